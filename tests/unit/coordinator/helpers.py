"""Helpers of the coordinator's tests."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from submarine_runtime.protocol import CoordinatorConfig, JobStore
from tests.configurations import make_coordinator_config, make_role


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
    return make_coordinator_config(
        [make_role("worker", 2)], job_id="j", backend="yarn", store=store
    )
