from __future__ import annotations

from pathlib import Path

import pytest

from submarine_runtime.protocol import Member, fixed_links, resolve_links
from submarine_runtime.storage import LocalStore
from submarine_runtime.tensorboards import (
    DiskQuota,
    DiskQuotaError,
    JobFiles,
    role as tensorboard_role,
)
from submarine_runtime.tensorboards.role import History

EVENTS = "train/events.out.tfevents.1.host.1"


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def shown(target: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }


def test_pieces_of_a_running_job_are_put_together_and_grow(tmp_path: Path) -> None:
    job, target = tmp_path / "job", tmp_path / "view"
    pieces = job / "growing/worker-1/e1-a1" / EVENTS
    put(pieces / "000000000000", b"abc")
    files = JobFiles(LocalStore(str(job)), "", str(target), DiskQuota(str(target), 1000))
    files.update()
    assert shown(target) == {f"worker-1/{EVENTS}": b"abc"}
    put(pieces / "000000000003", b"def")
    files.update()
    assert shown(target) == {f"worker-1/{EVENTS}": b"abcdef"}


def test_a_history_reads_ended_jobs_once_and_running_ones_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, target = tmp_path / "root", tmp_path / "view"
    own, done, lost, runs = (f"{name}-20261120-7f3a" for name in ("own", "done", "lost", "runs"))
    for job in (own, done, lost, runs):
        put(root / "202611" / job / "spec.json", b"{}")
    put(root / "202611" / done / "tensorboard" / EVENTS, b"chief")
    put(root / "202611" / done / "tasks/worker-1/tensorboard" / EVENTS, b"other")
    put(root / "202611" / done / "record.json", b"{}")
    put(root / "202611" / lost / "growing/worker-0/e1-a1" / EVENTS / "000000000000", b"half")
    put(root / "202611" / lost / "record.json", b"{}")
    put(root / "202611" / runs / "growing/worker-0/e1-a1" / EVENTS / "000000000000", b"a")
    put(root / "cache/environment.tar.gz", b"no job")
    store = LocalStore(str(root / "202611" / own))
    history = History(store, str(root), own, str(target), DiskQuota(str(target), 1000))
    history.update()
    expected = {
        f"{done}/{EVENTS}": b"chief",
        f"{done}/worker-1/{EVENTS}": b"other",
        f"{lost}/worker-0/{EVENTS}": b"half",
        f"{runs}/worker-0/{EVENTS}": b"a",
    }
    assert shown(target) == expected
    (root / "202611" / done / "tensorboard" / EVENTS).unlink()
    put(root / "202611" / runs / "growing/worker-0/e1-a1" / EVENTS / "000000000001", b"b")
    monkeypatch.setattr(tensorboard_role, "LIST_SECONDS", 0.0)
    history.update()
    assert shown(target) == {**expected, f"{runs}/worker-0/{EVENTS}": b"ab"}


def test_a_full_disk_is_not_filled_further(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "view"
    for number in (1, 2):
        job = root / f"202611/job{number}-20261120-7f3a"
        put(job / "tensorboard/a.tfevents.1", b"x" * 100)
        put(job / "record.json", b"{}")
    quota = DiskQuota(str(target), 150)
    history = History(LocalStore(str(root)), str(root), "own", str(target), quota)
    for _ in range(2):
        with pytest.raises(DiskQuotaError):
            history.update()
    assert sum(map(len, shown(target).values())) == 100


MEMBERS = [
    Member("worker:0", "worker", 0, "node1", "10.0.0.1", (5000, 5001)),
    Member("worker:1", "worker", 1, "node2", "10.0.0.2"),
]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://worker-1:8080/x?y#z", "http://node2:8080/x?y#z"),
        ("https://worker-0", "https://node1"),
        ("http://master-0:8080", "http://node1:8080"),
        ("http://worker-0:0/", "http://node1:5000/"),
        ("http://worker-1:0/", "http://worker-1:0/"),
        ("http://worker-7:80", "http://worker-7:80"),
        ("http://worker-0.example:80", "http://worker-0.example:80"),
        ("http://host:8080/worker-0", "http://host:8080/worker-0"),
    ],
)
def test_names_of_tasks_in_links(url: str, expected: str) -> None:
    assert resolve_links({"a": url}, MEMBERS) == {"a": expected}


def test_a_link_to_a_task_is_shown_once_it_leads_somewhere() -> None:
    links = {"a": "http://worker-0:80", "b": "http://docs/", "c": "http://master-0:80"}
    assert fixed_links(links, ["worker"]) == {"b": "http://docs/"}
    assert fixed_links(links, ["chief"]) == {"a": "http://worker-0:80", "b": "http://docs/"}
