"""A job on YARN that brings the kernel's own Python along: packed and uploaded once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.client.listing import list_jobs
from submarine_jobs.environments import current_layout, list_items, provision as providing
from submarine_jobs.model import JobView
from submarine_runtime.protocol import State, layout
from tests.cluster.jobs.training import workers
from tests.waiting import until

pytestmark = pytest.mark.cluster

PROGRAM = """\
import abacus, json, os, subprocess, sys
print(json.dumps([abacus.BEADS, sys.executable, sys.prefix]))
print(subprocess.check_output(["which", "python3"], text=True).strip())
print(os.path.realpath(sys.prefix), os.stat(sys.prefix).st_ctime_ns)
"""


@pytest.fixture
def small_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the kernel's environment held one package only: the real one has gigabytes."""
    (tmp_path / "abacus").mkdir()
    (tmp_path / "abacus" / "__init__.py").write_text("BEADS = 10\n")
    small = replace(current_layout((tmp_path,)), scripts=None)
    monkeypatch.setattr(providing, "kernel_items", lambda: list(list_items(small)))


@pytest.mark.usefixtures("small_kernel")
@pytest.mark.parametrize("count", [1, 2])
def test_the_kernels_environment_comes_along_once(
    session: Session, submit: Callable[..., Job], count: int
) -> None:
    storage, root = session.backend().job_root()
    cache = f"{root}/{layout.RUNTIME_CACHE}"

    def archives() -> dict[str, tuple[int, float]]:
        entries = storage.list_directory(cache)
        kept = [e for e in entries if e.name.startswith("python-env-")]
        return {e.name: (e.size, e.modified) for e in kept if not e.name.endswith(providing.USED)}

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
    lines = first.log("stdout", task="worker:0").data.decode().splitlines()
    places = {lines[2]}
    for index in range(count):
        lines = second.log("stdout", task=f"worker:{index}").data.decode().splitlines()
        beads, executable, prefix = json.loads(lines[0])
        assert beads == 10
        assert executable.endswith("/python-env/bin/python3")
        assert prefix.endswith("/python-env")
        assert lines[1] == executable  # commands that say python3 mean this one
        # Beside the archive in YARN's cache: the second job has not unpacked it again.
        places.add(lines[2])
    (place,) = places
    assert "/filecache/" in place


@pytest.mark.full
@pytest.mark.usefixtures("small_kernel")
def test_environment_of_a_running_job_is_not_removed(
    session: Session,
    submit: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    storage, root = session.backend().job_root()
    cache = f"{root}/{layout.RUNTIME_CACHE}"
    go = tmp_path / "go"
    program = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.1)\n"
    job = submit(program, "uses", python_env="auto", python="python-env/bin/python3")
    (name,) = job.directory.read_json(layout.INTENT)["environments"]
    assert storage.stat(f"{cache}/{name}") is not None
    for other in storage.list_directory(cache):  # of other tests
        if other.name.startswith(providing.PREFIX) and not other.name.startswith(name):
            storage.delete(f"{cache}/{other.name}")
    monkeypatch.setattr(providing, "UNUSED_AFTER", -1.0)
    monkeypatch.setattr(providing, "CHECK_EVERY", 0.0)
    other_job = submit("pass\n", "next")
    assert storage.stat(f"{cache}/{name}") is not None
    go.touch()
    assert job.wait(timeout=180).state is State.SUCCEEDED
    assert other_job.wait(timeout=180).state is State.SUCCEEDED
    until(lambda: job.id not in (session.backend().active_jobs() or ()))
    submit("pass\n", "last").wait(timeout=180)
    assert storage.stat(f"{cache}/{name}") is None


def zeros(folder: Path, mebibytes: int) -> None:
    """A file whose archive is small, and which takes a node's disk a while to unpack."""
    with open(folder / "abacus" / "weights.bin", "wb") as file:
        for _ in range(mebibytes):
            file.write(bytes(1 << 20))


@pytest.mark.full
@pytest.mark.usefixtures("small_kernel")
@pytest.mark.parametrize(("count", "queue"), [(1, "default"), (1, "narrow"), (2, "default")])
def test_unpacking_shows_a_percentage_and_is_no_wait_in_the_queue(
    session: Session, submit: Callable[..., Job], tmp_path: Path, count: int, queue: str
) -> None:
    """In the master's container, in one beside it, and in those of a gang."""
    zeros(tmp_path, 1000 + count * 10 + len(queue))  # not unpacked by another case before
    changes: dict[str, Any] = {"python_env": "auto", "python": "python-env/bin/python3"}
    changes |= {"queue": queue, "memory": 700}
    if count > 1:
        changes |= {"roles": workers(count), "framework": "any", "policy": "all"}
    job = submit("import time\ntime.sleep(2)\n", "unpack", **changes)
    assert job.handle is not None
    assert (job.handle["containers"] > 1) == (count > 1 or queue == "narrow")
    states: list[State] = []
    seen: list[JobView] = []

    def look(view: JobView) -> None:
        seen.append(view)

    unsubscribe = session.watcher.subscribe(job, look)
    try:
        while not job.record().state.ended:
            states.append(next(r for r in list_jobs(session) if r.job_id == job.id).state)
            time.sleep(0.3)
    finally:
        unsubscribe()
    record = job.record()
    assert record.state is State.SUCCEEDED, record.detail
    details = [
        task.detail
        for view in seen
        if view.record.state is State.STARTING
        for task in view.record.tasks
        if task.detail
    ]
    told = r"Unpacking the Python environment: \d+ % of \d+ MiB\."
    assert len(set(details)) > 1, details
    assert all(re.fullmatch(told, text) for text in details), details
    assert State.STARTING in states
    began = states.index(State.STARTING)
    assert State.PENDING not in states[began:]
