"""Any program: nothing but what every program of Submarine finds."""

from __future__ import annotations

from typing import Mapping, Sequence

from submarine_runtime.protocol.launch import AgentConfig


def environment(config: AgentConfig, cluster: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """No variables of its own."""
    return {}
