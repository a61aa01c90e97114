"""Parts of the coordinator by themselves: journal, attempts, YARN's words, the port's edge."""

from __future__ import annotations

import errno
import json
import os
import resource
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from submarine_runtime.coordinator.job_directory import EarlierAttempts, EventPublisher, takeover
from submarine_runtime.coordinator.machine import new_job_state
from submarine_runtime.coordinator.placement.yarn_placer import ending_of
from submarine_runtime.coordinator.record import JobStatus, Journal
from submarine_runtime.coordinator.reporter import new_job_record
from submarine_runtime.coordinator.server.http_messages import has_token, parse_request_head
from submarine_runtime.coordinator.server.job_stream import parse_offsets
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.record import LOCALIZED, Event, Phase
from submarine_runtime.protocol.states import State
from submarine_runtime.storage.local import LocalStore


def test_a_journal_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    assert journal.is_new
    journal.append({"type": "begin"})
    journal.append({"type": "tick"})
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"type": "half')
    again = Journal(str(path))
    assert [entry["type"] for entry in again.entries()] == ["begin", "tick"]
    again.append({"type": "resumed"})
    again.close()
    third = Journal(str(path))
    assert [entry["type"] for entry in third.entries()] == ["begin", "tick", "resumed"]
    third.close()


def test_a_short_write_is_taken_back_and_repeated(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    assert journal.append({"type": "begin"})
    size = path.stat().st_size
    with no_larger_files_than(size + 5):
        assert not journal.append({"type": "tick", "n": 1})
        assert not journal.append({"type": "tick", "n": 2})
    assert journal.failure == os.strerror(errno.EFBIG)
    assert path.stat().st_size == size
    # A coordinator that starts now finds a journal that is not complete.
    broken = Journal(str(path))
    assert (broken.complete, broken.is_new) == (False, False)
    assert [entry["type"] for entry in broken.entries()] == ["begin"]
    broken.close()
    # Once there is room, nothing is missing.
    assert journal.append({"type": "tick", "n": 3})
    journal.close()
    again = Journal(str(path))
    assert again.complete
    assert [entry.get("n") for entry in again.entries()] == [None, 1, 2, 3]
    again.clear()
    again.append({"type": "begin"})
    again.close()
    last = Journal(str(path))
    assert last.complete
    assert list(last.entries()) == [{"type": "begin"}]
    last.close()


@contextmanager
def no_larger_files_than(size: int) -> Iterator[None]:
    """Let this process write no file beyond ``size`` bytes: a write is cut there, then refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_journal_that_stays_without_room_uses_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_runtime.coordinator.record.journal.MAX_PENDING_BYTES", 200)
    journal = Journal(str(tmp_path / "journal.jsonl"))
    journal.append({"n": 0})
    with no_larger_files_than(10):
        for number in range(50):
            assert not journal.append({"n": number})
    assert not journal.append({"n": 50})
    journal.close()
    again = Journal(str(tmp_path / "journal.jsonl"))
    assert not again.complete
    assert list(again.entries()) == [{"n": 0}]
    again.close()


def test_a_bad_record_in_the_middle_makes_a_journal_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(str(path)).close()
    path.write_bytes(b'{"n": 1}\n{"n": \n{"n": 3}\n')
    journal = Journal(str(path))
    assert not journal.complete
    assert list(journal.entries()) == [{"n": 1}]
    journal.close()


def test_events_come_from_the_job_directory_where_the_file_lacks_them(tmp_path: Path) -> None:
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


def test_files_that_several_tasks_did_not_save_are_one_sentence(tmp_path: Path) -> None:
    orders = config(tmp_path)
    orders = replace(orders, roles=[replace(orders.roles[0], instances=5)])
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


def test_what_earlier_attempts_left_is_kept_in_the_working_directory(tmp_path: Path) -> None:
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
def test_the_number_of_the_applications_attempt(container: str, attempt: int) -> None:
    assert takeover.application_attempt({"CONTAINER_ID": container}) == attempt


def config(root: Path) -> CoordinatorConfig:
    store = JobStore("local", str(root))
    roles = [RoleOrders("worker", "worker", 2)]
    return CoordinatorConfig("j", "n", "u", "yarn", "1", 0.0, store, str(root), roles)


def test_a_restarted_coordinator_has_its_claim_and_nobody_else(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for name in ("job", "one", "two"):
        (tmp_path / name).mkdir()
    store = LocalStore(str(job))
    assert takeover.claim_job(store, config(job), str(tmp_path / "one"), 1)
    assert takeover.claim_job(store, config(job), str(tmp_path / "one"), 1)
    assert not takeover.claim_job(store, config(job), str(tmp_path / "two"), 1)
    assert takeover.claim_job(store, config(job), str(tmp_path / "two"), 2)
    assert (job / "claim-2.json").exists()


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


def test_what_an_earlier_attempt_left(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    task = {"task": "worker:1", "state": "RUNNING", "epoch": 3, "attempt": 2}
    task["container_id"] = "container_1"
    ended = {"task": "worker:0", "state": "SUCCEEDED", "epoch": 3, "container_id": "container_0"}
    events: list[dict[str, Any]] = [
        {"kind": "gang", "data": {"epoch": 3, "restarts": 2}},
        {"kind": "task", "data": {"task": task}},
        {"kind": "task", "data": {"task": ended, "logs": {"worker:0/e3-a1/stdout": 5}}},
        {"kind": "warning", "detail": "No step is common.", "data": {"of": "restore_point"}},
        {"kind": "warning", "detail": "Something else.", "data": ["of"]},
    ]
    words = {"time": 1.0, "writer": "coordinator-1"}
    lines = [json.dumps({"seq": n, **words, **event}) for n, event in enumerate(events)]
    (tmp_path / "events/coordinator-1-000000.jsonl").write_text("\n".join([*lines, "{broken"]))
    found = takeover.read_earlier_attempts(LocalStore(str(tmp_path)), 2)
    assert (found.epoch, found.restarts, len(found.events)) == (3, 2, 5)
    assert found.logs == {"worker:0/e3-a1/stdout": 5}
    assert found.interrupted == ["worker:1/e3-a2"]
    # An attempt that died before anything ran leaves no more and no less.
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


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, {"RemoteException": {"exception": "NotFoundException"}}, True),
        (404, {}, False),
        (200, {"container": {"state": "DONE"}}, True),
        (200, {"container": {"state": "RUNNING"}}, False),
        (500, {}, False),
    ],
)
def test_a_node_manager_is_asked_for_a_container(status: int, body: object, gone: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/ws/v1/node/containers/container_1"
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request).start()
    url = f"http://127.0.0.1:{server.server_port}/node/containerlogs/container_1/ada"
    assert takeover.container_has_ended(url) is gone
    server.server_close()
    assert takeover.container_has_ended(url) is False


@pytest.mark.parametrize(
    ("said", "reason", "detail"),
    [
        (
            "Container [pid=1] is running 5B beyond the 'PHYSICAL' memory limit. Current usage: "
            "4.1 GB of 4 GB physical memory used; 5 GB of 8 GB virtual memory used.",
            "out_of_memory",
            "The whole container used 4.1 GB of 4 GB.",
        ),
        ("Container released on a *lost* node", "node_lost", "Its node was lost."),
        ("Failed on local localizer", "localisation_failed", "Failed on local localizer"),
        ("", "agent_lost", "YARN says FAILED and nothing else."),
    ],
)
def test_yarns_words_for_a_container_that_ended(said: str, reason: str, detail: str) -> None:
    assert ending_of("FAILED", said) == {"reason": reason, "detail": detail}


def test_heads_and_tokens() -> None:
    head = b"GET /v1/link HTTP/1.1\r\nAuthorization: Bearer secret\r\nUpgrade: x"
    method, target, headers = parse_request_head(head)
    assert (method, target, headers["upgrade"]) == ("GET", "/v1/link", "x")
    assert has_token(headers, b"secret")
    assert not has_token(headers, b"other")
    assert not has_token({}, b"")
    with pytest.raises(ValueError, match="not a request"):
        parse_request_head(b"\x16\x03\x01 nonsense")


def test_a_restarted_coordinator_finds_its_phases_again(tmp_path: Path) -> None:
    orders = config(tmp_path)
    job = new_job_state(orders)

    def status() -> JobStatus:
        record = new_job_record(orders, job, EarlierAttempts())
        record.phases.append(Phase("queue", 1.0))
        return JobStatus(record, "coordinator-1", Journal(str(tmp_path / "events.jsonl")))

    first = status()
    first.add_event("state", "Two containers are there..", state=State.STARTING)
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
    assert again.to_json()["events"][0]["detail"] == "Two containers are there."


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
    first.add_event("state", "Two containers are there..", state=State.STARTING)
    phases = first.to_json()["phases"]
    names = ["queue", "master_start", "containers", "localizing"]
    assert [phase["name"] for phase in phases] == names
    assert [phase["end"] == after["start"] for phase, after in pairwise(phases)] == [True] * 3
    assert phases[0]["end"] == 20.0
    assert phases[2]["start"] == first.to_json()["events"][0]["time"]
    assert status(20.0).to_json()["phases"] == phases
    # Where it is not known, or a second attempt's container is younger than the event.
    for arrived in (None, 9e9):
        queue, master = status(arrived).to_json()["phases"][:2]
        assert queue["end"] == master["start"] == master["end"] == phases[2]["start"]


def test_positions_of_a_follower() -> None:
    text = "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=-3"
    assert parse_offsets(text) == {"worker:0/e1-a1/stdout": 17, "ps:0/e2-a1/stderr": 0}
    with pytest.raises(ValueError, match="invalid literal"):
        parse_offsets("worker:0/e1-a1/stdout=many")
