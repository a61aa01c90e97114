"""Unattended notebook runs, and workflows of notebooks in the format of Azkaban's Flow 2.0.

Workflows are read, checked, drawn, run and exported here. A node runs a notebook or a command.
"""
