"""A job on YARN that brings the kernel's own Python along: packed and uploaded once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.environments import provide as providing
from submarine_jobs.environments.inventory import items_of, this_layout
from submarine_jobs.job import Job
from submarine_jobs.session import Session
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.states import State

from .training import workers

pytestmark = pytest.mark.cluster

PROGRAM = """\
import abacus, json, os, subprocess, sys
print(json.dumps([abacus.BEADS, sys.executable, sys.prefix]))
print(subprocess.check_output(["which", "python3"], text=True).strip())
"""


@pytest.fixture
def small_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the kernel's environment held one package only: the real one has gigabytes."""
    (tmp_path / "abacus").mkdir()
    (tmp_path / "abacus" / "__init__.py").write_text("BEADS = 10\n")
    small = replace(this_layout((tmp_path,)), scripts=None)
    monkeypatch.setattr(providing, "kernel_items", lambda: list(items_of(small)))


@pytest.mark.usefixtures("small_kernel")
@pytest.mark.parametrize("count", [1, 2])
def test_the_kernels_environment_comes_along_once(
    session: Session, submit: Callable[..., Job], count: int
) -> None:
    storage, root = session.backend().job_root()
    cache = f"{root}/{layout.RUNTIME_CACHE}"

    def archives() -> dict[str, tuple[int, float]]:
        entries = storage.list_directory(cache)
        return {e.name: (e.size, e.modified) for e in entries if e.name.startswith("python-env-")}

    changes = {"roles": workers(count), "framework": "any", "policy": "all" if count > 1 else None}
    changes |= {"python_env": "auto", "python": "python-env/bin/python3"}
    first = submit(PROGRAM, "environment", **changes)
    record = first.wait(timeout=180)
    assert record.state is State.SUCCEEDED, (record.detail, first.log("stderr").data)
    after_first = archives()
    assert any(10 << 20 < size < 80 << 20 for size, _ in after_first.values())
    second = submit(PROGRAM, "environment", **changes)
    assert second.wait(timeout=180).state is State.SUCCEEDED
    assert archives() == after_first  # not one byte was sent again
    for index in range(count):
        lines = second.log("stdout", task=f"worker:{index}").data.decode().splitlines()
        beads, executable, prefix = json.loads(lines[0])
        assert beads == 10
        assert executable.endswith("/python-env/bin/python3")
        assert prefix.endswith("/python-env")
        assert lines[1] == executable  # commands that say python3 mean this one
