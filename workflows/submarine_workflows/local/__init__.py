"""Workflows run on this machine, with Azkaban's semantics: how one is tried before it is scheduled.

``progress`` decides, ``runner`` does, ``journal`` remembers, ``views`` tells. Knows commands and
their ends only; what a node's command is stands in ``node_commands``.
"""
