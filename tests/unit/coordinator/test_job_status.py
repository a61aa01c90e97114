"""The record of a distributed job while it runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from submarine_runtime.coordinator.job_directory import EarlierAttempts
from submarine_runtime.coordinator.machine import new_job_state
from submarine_runtime.coordinator.record import JobStatus, Journal
from submarine_runtime.coordinator.reporter import new_job_record
from submarine_runtime.protocol import LOCALIZED, Phase, State
from tests.unit.coordinator.helpers import config


def test_a_file_that_several_tasks_did_not_save_is_one_sentence(tmp_path: Path) -> None:
    orders = config(tmp_path)
    spec = replace(orders.spec, roles=(replace(orders.spec.roles[0], instances=5),))
    orders = replace(orders, spec=spec)
    record = new_job_record(orders, new_job_state(orders), EarlierAttempts())
    status = JobStatus(record, "coordinator-1", Journal(str(tmp_path / "events.jsonl")))
    for number in range(5):
        files = [["model.keras", 1000], [f"{number}.csv", 1]]
        unsaved = {"files": files, "count": 3, "size": 1101}
        status.add_end_report(f"worker:{number}", {"unsaved": unsaved})
    status.summarize()
    found = [text.partition(" Write it")[0] for text in status.to_json()["warnings"]]
    assert found == [
        "worker:0, worker:1, worker:2 and 2 more: model.keras, 5.0 kB, was not saved.",
        *(f"worker:{number}: {number}.csv, 1 B, was not saved." for number in range(5)),
        "5 more files of the working directory, 500 B, were not saved.",
    ]


def test_a_restarted_coordinator_restores_its_phases(tmp_path: Path) -> None:
    orders = config(tmp_path)
    job = new_job_state(orders)

    def status() -> JobStatus:
        record = new_job_record(orders, job, EarlierAttempts())
        record.phases.append(Phase("queue", 1.0))
        return JobStatus(record, "coordinator-1", Journal(str(tmp_path / "events.jsonl")))

    first = status()
    first.add_event("state", "Two containers are allocated..", state=State.STARTING)
    first.add_event(LOCALIZED)
    first.add_event("state", state=State.RUNNING)
    again = status()
    assert again.to_json()["phases"] == first.to_json()["phases"]
    assert [p["name"] for p in first.to_json()["phases"] if p["end"] is not None] == [
        "queue",
        "localizing",
        "start",
    ]
    assert again.to_json()["state"] == "RUNNING"
    assert again.to_json()["events"][0]["detail"] == "Two containers are allocated."


def test_the_queue_of_a_gang_ends_before_its_master_starts(tmp_path: Path) -> None:
    orders = config(tmp_path)
    job = new_job_state(orders)

    def status(arrived: float | None) -> JobStatus:
        record = new_job_record(orders, job, EarlierAttempts())
        record.phases.append(Phase("queue", 1.0))
        return JobStatus(
            record, "coordinator-1", Journal(str(tmp_path / "events.jsonl")), arrived=arrived
        )

    first = status(20.0)
    first.add_event("claimed")
    first.add_event("state", "Two containers are allocated..", state=State.STARTING)
    phases = first.to_json()["phases"]
    names = ["queue", "master_start", "containers", "localizing"]
    assert [phase["name"] for phase in phases] == names
    assert [phase["end"] == after["start"] for phase, after in pairwise(phases)] == [True] * 3
    assert phases[0]["end"] == 20.0
    assert phases[2]["start"] == first.to_json()["events"][0]["time"]
    assert status(20.0).to_json()["phases"] == phases
    # The arrival is unknown, or the container of a second attempt is younger than the event.
    for arrived in (None, 9e9):
        queue, master = status(arrived).to_json()["phases"][:2]
        assert queue["end"] == master["start"] == master["end"] == phases[2]["start"]
