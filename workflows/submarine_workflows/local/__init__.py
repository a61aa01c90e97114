"""Run workflows on this machine with Azkaban's semantics, for example before scheduling them.

``progress`` contains the rules, ``runner`` executes them, ``journal`` records the run, and
``views`` reads it. ``node_commands`` defines the command of a node.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
