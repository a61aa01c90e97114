"""Helpers of the coordinator's tests."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders


@contextmanager
def no_larger_files_than(size: int) -> Iterator[None]:
    """Limit the files of this process to ``size`` bytes; a longer write is cut, then refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def config(root: Path) -> CoordinatorConfig:
    store = JobStore("local", str(root))
    roles = [RoleOrders("worker", "worker", 2)]
    return CoordinatorConfig("j", "n", "u", "yarn", "1", 0.0, store, str(root), roles)
