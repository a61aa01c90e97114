"""The environment that each framework expects of its cluster: one small module each.

A module has ``environment(config, cluster) -> dict``: the variables for the task that ``config``
describes, where ``cluster`` maps each role to its tasks' ``host:port`` in order of index. Nothing
here starts a process or reserves a port.
"""

from __future__ import annotations

from importlib import import_module
from typing import Mapping, Sequence

from submarine_runtime.protocol.launch import AgentConfig

Cluster = Mapping[str, Sequence[str]]

#: Words of ``--framework`` and the module behind each.
KNOWN = {"any": "generic", "auto": "generic", "tensorflow": "tensorflow"}


def environment(config: AgentConfig, cluster: Cluster) -> dict[str, str]:
    """The variables that ``config.framework`` expects.

    Raises
    ------
    ValueError
        If no such framework is known.
    """
    if config.framework not in KNOWN:
        known = ", ".join(sorted(KNOWN))
        raise ValueError(f"framework {config.framework!r} is unknown; this agent knows {known}")
    module = import_module(f"submarine_runtime.frameworks.{KNOWN[config.framework]}")
    variables: dict[str, str] = module.environment(config, cluster)
    return variables
