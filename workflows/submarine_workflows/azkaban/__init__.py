"""Workflows on Azkaban: a project of its own making, and the calls of its web server."""
