"""Parts of the coordinator by themselves: journal, attempts, YARN's words, the port's edge."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from submarine_runtime.agent.store_local import LocalStore
from submarine_runtime.coordinator import takeover
from submarine_runtime.coordinator.follow import positions_of
from submarine_runtime.coordinator.greeting import knows_token, parse_head
from submarine_runtime.coordinator.job_record import JobStatus
from submarine_runtime.coordinator.journal import Journal
from submarine_runtime.coordinator.play import new_play
from submarine_runtime.coordinator.reporting import new_job_record
from submarine_runtime.coordinator.takeover import Earlier
from submarine_runtime.coordinator.yarn_placer import ending_of
from submarine_runtime.protocol.coordination import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.launch import JobStore
from submarine_runtime.protocol.record import Phase
from submarine_runtime.protocol.states import State


def test_a_journal_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    assert journal.fresh
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
    assert takeover.claim(store, config(job), str(tmp_path / "one"), 1)
    assert takeover.claim(store, config(job), str(tmp_path / "one"), 1)
    assert not takeover.claim(store, config(job), str(tmp_path / "two"), 1)
    assert takeover.claim(store, config(job), str(tmp_path / "two"), 2)
    assert (job / "claim-2.json").exists()


def test_what_an_earlier_attempt_left(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    task = {"task": "worker:1", "state": "RUNNING", "epoch": 3, "attempt": 2}
    task["container_id"] = "container_1"
    ended = {"task": "worker:0", "state": "SUCCEEDED", "epoch": 3, "container_id": "container_0"}
    events = [
        {"kind": "gang", "data": {"epoch": 3, "restarts": 2}},
        {"kind": "task", "data": {"task": task}},
        {"kind": "task", "data": {"task": ended, "logs": {"worker:0/e3-a1/stdout": 5}}},
    ]
    words = {"time": 1.0, "writer": "coordinator-1"}
    lines = [json.dumps({"seq": n, **words, **event}) for n, event in enumerate(events)]
    (tmp_path / "events/coordinator-1-000000.jsonl").write_text("\n".join([*lines, "{broken"]))
    found = takeover.earlier(LocalStore(str(tmp_path)), 2)
    assert (found.epoch, found.restarts, len(found.events)) == (3, 2, 3)
    assert found.logs == {"worker:0/e3-a1/stdout": 5}
    assert found.cut == ["worker:1/e3-a2"]
    # An attempt that died before anything ran leaves no more and no less.
    assert takeover.earlier(LocalStore(str(tmp_path)), 3).cut == found.cut
    orders = config(tmp_path)
    record = new_job_record(orders, new_play(orders, 4), found)
    assert record.missing == ["worker:1/e3-a2 was lost with its master: its log may lack its end."]
    fences = takeover.fences(found, config(tmp_path), answered=True)
    assert fences == {"earlier:container_1": 27.0}
    assert takeover.fences(found, config(tmp_path), answered=False)["earlier:container_1"] > 27.0
    assert takeover.fences(Earlier(), config(tmp_path), answered=True) == {}


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
    assert takeover.container_is_gone(url) is gone
    server.server_close()
    assert takeover.container_is_gone(url) is False


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
    method, target, headers = parse_head(head)
    assert (method, target, headers["upgrade"]) == ("GET", "/v1/link", "x")
    assert knows_token(headers, b"secret")
    assert not knows_token(headers, b"other")
    assert not knows_token({}, b"")
    with pytest.raises(ValueError, match="not a request"):
        parse_head(b"\x16\x03\x01 nonsense")


def test_a_restarted_coordinator_finds_its_phases_again(tmp_path: Path) -> None:
    orders = config(tmp_path)
    play = new_play(orders)

    def status() -> JobStatus:
        record = new_job_record(orders, play, Earlier())
        record.phases.append(Phase("queue", 1.0))
        return JobStatus(record, "coordinator-1", Journal(str(tmp_path / "events.jsonl")))

    first = status()
    first.note("state", "Two containers are there..", state=State.STARTING)
    first.note("state", state=State.RUNNING)
    again = status()
    assert again.to_json()["phases"] == first.to_json()["phases"]
    assert [p["name"] for p in first.to_json()["phases"] if p["end"] is not None] == [
        "queue",
        "start",
    ]
    assert again.to_json()["state"] == "RUNNING"
    assert again.to_json()["events"][0]["detail"] == "Two containers are there."


def test_positions_of_a_follower() -> None:
    text = "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=-3"
    assert positions_of(text) == {"worker:0/e1-a1/stdout": 17, "ps:0/e2-a1/stderr": 0}
    with pytest.raises(ValueError, match="invalid literal"):
        positions_of("worker:0/e1-a1/stdout=many")
