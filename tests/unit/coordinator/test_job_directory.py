"""Claims, events and earlier attempts in the job directory."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from submarine_runtime.coordinator.job_directory import EarlierAttempts, EventPublisher, takeover
from submarine_runtime.coordinator.machine import new_job_state
from submarine_runtime.coordinator.record import JobStatus, Journal
from submarine_runtime.coordinator.reporter import new_job_record
from submarine_runtime.protocol import Event, layout
from submarine_runtime.storage import LocalStore
from tests.unit.coordinator.helpers import config, no_larger_files_than


def test_events_missing_from_the_file_are_read_from_the_job_directory(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    store = LocalStore(str(job))

    def status(kept: Journal, shipped: Sequence[Event] = ()) -> JobStatus:
        record = new_job_record(config(job), new_job_state(config(job)), EarlierAttempts())
        return JobStatus(record, "coordinator-1", kept, shipped)

    kept = Journal(str(tmp_path / "events.jsonl"))
    first = status(kept)
    shipper = EventPublisher(store, first, str(tmp_path), 1, print, print)
    first.add_event("one")
    with no_larger_files_than(1):
        first.add_event("two")
    shipper.flush()
    first.add_event("three", "x" * 500)
    shipper.flush()
    os.unlink(tmp_path / "events.jsonl.complete")
    os.truncate(tmp_path / "events.jsonl", 3)
    shipped = takeover.read_earlier_attempts(store, 2).events
    again = status(Journal(str(tmp_path / "events.jsonl")), shipped)
    again.add_event("four")
    assert [e["kind"] for e in again.to_json()["events"]] == ["one", "two", "three", "four"]
    os.unlink(tmp_path / "shipped.json")
    EventPublisher(store, again, str(tmp_path), 1, print, print).flush()
    found = takeover.read_earlier_attempts(store, 2).events
    assert [(event.seq, event.kind) for event in found] == [
        (0, "one"), (1, "two"), (2, "three"), (3, "four"),
    ]  # fmt: skip


def test_earlier_attempts_are_stored_in_the_working_directory(tmp_path: Path) -> None:
    assert EarlierAttempts.load(str(tmp_path)) is None
    found = EarlierAttempts(
        3, 2, {"worker:0": {"task": "worker:0"}}, {"a": 1}, interrupted=["worker:0/e1-a1"]
    )
    found.add_line(json.dumps({"seq": 0, "time": 1.0, "kind": "gang", "writer": "c"}).encode())
    found.save(str(tmp_path))
    assert EarlierAttempts.load(str(tmp_path)) == found


@pytest.mark.parametrize(
    ("container", "attempt"),
    [
        ("container_e01_1700000000000_0002_02_000001", 2),
        ("container_1700000000000_0002_01_000001", 1),
        ("nonsense", 1),
        ("", 1),
    ],
)
def test_application_attempt_number(container: str, attempt: int) -> None:
    assert takeover.application_attempt({"CONTAINER_ID": container}) == attempt


def test_a_restarted_coordinator_keeps_its_claim(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for name in ("job", "one", "two"):
        (tmp_path / name).mkdir()
    store = LocalStore(str(job))
    assert takeover.claim_job(store, config(job), str(tmp_path / "one"), 1)
    assert takeover.claim_job(store, config(job), str(tmp_path / "one"), 1)
    assert not takeover.claim_job(store, config(job), str(tmp_path / "two"), 1)
    assert takeover.claim_job(store, config(job), str(tmp_path / "two"), 2)
    assert (job / "claim-2.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("later", [2, 3, 10])
def test_any_later_claim_supersedes(tmp_path: Path, later: int) -> None:
    store = LocalStore(str(tmp_path))
    assert takeover.claim_job(store, config(tmp_path), str(tmp_path), 1)
    status = JobStatus(
        new_job_record(config(tmp_path), new_job_state(config(tmp_path)), EarlierAttempts()),
        "coordinator-1",
        Journal(str(tmp_path / "events.jsonl")),
    )
    told: Queue[dict[str, Any]] = Queue()
    shipper = EventPublisher(store, status, str(tmp_path), 1, told.put, print)
    (tmp_path / f"claim-{later}.json").write_text("{}")
    (tmp_path / "claim-x.json").write_text("{}")
    shipper.start()
    try:
        assert told.get(timeout=30)["type"] == "superseded"
    finally:
        shipper.stop(30)
    # An earlier attempt that starts late runs nothing.
    assert not takeover.claim_job(store, config(tmp_path), str(tmp_path), 1)
    assert layout.newest_claim(path.name for path in tmp_path.iterdir()) == later


def test_earlier_attempts_are_read_from_the_job_directory(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    task = {"task": "worker:1", "state": "RUNNING", "epoch": 3, "attempt": 2}
    task["container_id"] = "container_1"
    ended = {"task": "worker:0", "state": "SUCCEEDED", "epoch": 3, "container_id": "container_0"}
    events: list[dict[str, Any]] = [
        {"kind": "gang", "data": {"epoch": 3, "restarts": 2}},
        {"kind": "task", "data": {"task": task}},
        {"kind": "task", "data": {"task": ended, "logs": {"worker:0/e3-a1/stdout": 5}}},
        {"kind": "warning", "detail": "No step is common.", "data": {"of": "restore_point"}},
        {"kind": "warning", "detail": "Something else.", "data": {"of": 3}},
        {"kind": "warning", "detail": "Not an event.", "data": ["of"]},
    ]
    words = {"time": 1.0, "writer": "coordinator-1"}
    lines = [json.dumps({"seq": n, **words, **event}) for n, event in enumerate(events)]
    (tmp_path / "events/coordinator-1-000000.jsonl").write_text("\n".join([*lines, "{broken"]))
    found = takeover.read_earlier_attempts(LocalStore(str(tmp_path)), 2)
    assert (found.epoch, found.restarts, len(found.events)) == (3, 2, 5)
    assert found.logs == {"worker:0/e3-a1/stdout": 5}
    assert found.interrupted == ["worker:1/e3-a2"]
    # An attempt that ended before any program started changes nothing.
    assert (
        takeover.read_earlier_attempts(LocalStore(str(tmp_path)), 3).interrupted
        == found.interrupted
    )
    orders = config(tmp_path)
    record = new_job_record(orders, new_job_state(orders, 4), found)
    assert record.warnings == ["No step is common."]
    assert record.missing == ["worker:1/e3-a2 was lost with its master: its log may lack its end."]
    fences = takeover.earlier_fences(found, config(tmp_path), stopped=True)
    assert fences == {"earlier:container_1": 27.0}
    assert (
        takeover.earlier_fences(found, config(tmp_path), stopped=False)["earlier:container_1"]
        > 27.0
    )
    assert takeover.earlier_fences(EarlierAttempts(), config(tmp_path), stopped=True) == {}
