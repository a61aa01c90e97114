"""TensorFlow: ``TF_CONFIG`` where there is a cluster; a single task needs none."""

from __future__ import annotations

import json
from typing import Mapping, Sequence

from submarine_runtime.protocol.launch import AgentConfig


def environment(config: AgentConfig, cluster: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """``TF_CONFIG`` for more than one task; without it TensorFlow runs on its own."""
    if sum(len(tasks) for tasks in cluster.values()) < 2:
        return {}
    addresses = {role: list(tasks) for role, tasks in cluster.items()}
    task = {"type": config.role, "index": config.index}
    return {"TF_CONFIG": json.dumps({"cluster": addresses, "task": task})}
