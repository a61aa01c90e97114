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
from submarine_jobs.environments import (
    cache as caching,
    current_layout,
    list_items,
    provision as providing,
)
from submarine_jobs.model import JobView, Resources, Role
from submarine_runtime.protocol import EndReason, State, layout
from tests.cluster.jobs.training import workers
from tests.python_projects import project, without_network
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
        return {e.name: (e.size, e.modified) for e in kept if not e.name.endswith(".used")}

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


CHANGED = """\
import abacus, json, os, sys, zipfile
import added
try:
    import gone
except ImportError:
    gone = None
links = os.stat(zipfile.__file__).st_nlink
print(json.dumps([abacus.BEADS, added.NEW, gone is None, links, os.path.realpath(sys.prefix)]))
"""


@pytest.mark.usefixtures("small_kernel")
def test_one_more_package_is_a_delta(
    session: Session, submit: Callable[..., Job], tmp_path: Path
) -> None:
    (tmp_path / "abacus" / "beads.py").write_text(f"NAME = {str(tmp_path)!r}\n")
    (tmp_path / "gone.py").write_text("")
    changes: dict[str, Any] = {"roles": workers(2), "framework": "any", "policy": "all"}
    changes |= {"python_env": "auto", "python": "python-env/bin/python3"}
    first = submit(PROGRAM, "base", **changes)
    assert first.wait(timeout=180).state is State.SUCCEEDED
    (tmp_path / "abacus" / "__init__.py").write_text("BEADS = 12\n")
    (tmp_path / "added.py").write_text("NEW = True\n")
    (tmp_path / "gone.py").unlink()
    second = submit(CHANGED, "delta", **changes)
    record = second.wait(timeout=180)
    assert record.state is State.SUCCEEDED, (record.detail, second.log("stderr").data)
    names = second.directory.read_json(layout.INTENT)["environments"]
    (base,) = set(first.directory.read_json(layout.INTENT)["environments"]) & set(names)
    (delta,) = (name for name in names if name.endswith(".delta.tar.gz"))
    storage, root = session.backend().job_root()
    sizes = [storage.stat(f"{root}/{layout.RUNTIME_CACHE}/{name}").size for name in (base, delta)]  # type: ignore[union-attr]
    assert sizes[1] < 10_000 < 10_000_000 < sizes[0]
    for task in ("worker:0", "worker:1"):
        *found, place = json.loads(second.log("stdout", task=task).data)
        assert found[:3] == [12, True, True]
        assert found[3] >= 2, "a hard link to the file of the base"
        assert "/filecache/" in place


def test_each_role_has_an_environment_of_its_own(
    session: Session,
    submit: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Both are built by uv from files; neither has the packages of the kernel."""
    for name, value in without_network(tmp_path / "uv-cache").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    for name in ("first", "second"):
        project(tmp_path / name, name)
        (tmp_path / f"{name}.txt").write_text(f"./{name}\n")
    program = """
import importlib.util as found, os
names = [name for name in ("first", "second", "click") if found.find_spec(name)]
print(os.environ["SUBMARINE_ROLE"], *names)
"""
    roles = tuple(
        Role(
            role,
            1,
            Resources(memory=256),
            python_env=f"requirements:{tmp_path}/{name}.txt",
            python="python-env/bin/python3",
        )
        for role, name in (("worker", "first"), ("reader", "second"))
    )
    job = submit(program, "roles", roles=roles, framework="any", policy="all")
    record = job.wait(timeout=240)
    assert record.state is State.SUCCEEDED, (record.detail, job.log("stderr").data)
    for role, name in (("worker", "first"), ("reader", "second")):
        assert job.log("stdout", task=f"{role}:0").data.decode().split() == [role, name]


@pytest.mark.usefixtures("small_kernel")
def test_damaged_delta_starts_nothing(
    session: Session, submit: Callable[..., Job], tmp_path: Path
) -> None:
    (tmp_path / "abacus" / "beads.py").write_text(f"NAME = {str(tmp_path)!r}\n")
    changes: dict[str, Any] = {"python_env": "auto", "python": "python-env/bin/python3"}
    assert submit("pass\n", "base", **changes).wait(timeout=180).state is State.SUCCEEDED
    (tmp_path / "added.py").write_text("NEW = True\n")
    undamaged = submit("import added\n", "delta", **changes)
    assert undamaged.wait(timeout=180).state is State.SUCCEEDED
    storage, root = session.backend().job_root()
    names = undamaged.directory.read_json(layout.INTENT)["environments"]
    (delta,) = (name for name in names if name.endswith(".delta.tar.gz"))
    path = f"{root}/{layout.RUNTIME_CACHE}/{delta}"
    content = bytearray(storage.read(path))
    content[len(content) // 2] ^= 1
    storage.publish(path, bytes(content))  # The same size: only the agent can notice it.
    record = submit("print('ran')\n", "damaged", **changes).wait(timeout=180)
    assert record.state is State.FAILED
    assert record.reason is EndReason.LAUNCH_FAILED
    assert f"{delta} is damaged, its digest differs" in record.detail
    storage.delete(path)  # The next job uploads it again.
    repaired = submit("import added\n", "repaired", **changes)
    assert repaired.wait(timeout=180).state is State.SUCCEEDED


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
    names = job.directory.read_json(layout.INTENT)["environments"]
    assert len(names) == 2
    (key,) = {name.partition(".")[0] for name in names}
    assert all(storage.stat(f"{cache}/{name}") for name in names)
    for other in storage.list_directory(cache):  # of other tests
        if other.name.startswith(caching.PREFIX) and not other.name.startswith(key):
            storage.delete(f"{cache}/{other.name}")
    monkeypatch.setattr(caching, "UNUSED_AFTER", -1.0)
    monkeypatch.setattr(caching, "CHECK_EVERY", 0.0)
    other_job = submit("pass\n", "next")
    assert all(storage.stat(f"{cache}/{name}") for name in names)
    go.touch()
    assert job.wait(timeout=180).state is State.SUCCEEDED
    assert other_job.wait(timeout=180).state is State.SUCCEEDED
    until(lambda: job.id not in (session.backend().active_jobs() or ()))
    submit("pass\n", "last").wait(timeout=180)
    assert not any(storage.stat(f"{cache}/{name}") for name in names)


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
        if task.detail and not task.detail.startswith("localizing on ")
    ]
    told = r"Unpacking the Python environment: \d+ % of \d+ MiB\."
    assert len(set(details)) > 1, details
    assert all(re.fullmatch(told, text) for text in details), details
    assert State.STARTING in states
    began = states.index(State.STARTING)
    assert State.PENDING not in states[began:]
