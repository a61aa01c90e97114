"""The table of ``doctor --nodes``: the choice of nodes, the number at once, and the judgement."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from submarine_jobs.doctor import (
    Status,
    choose_nodes,
    node_probe,
    nodes,
    summary,
    table_rows,
)
from submarine_jobs.doctor.nodes import _batches, judge, probes_at_once, read_report
from submarine_jobs.errors import UsageError
from submarine_runtime.yarn import Node, Size

EMPTY = Size()
MASTER, PROBE = Size(512, 1), Size(256, 1)


def node(host: str, port: int = 1, state: str = "RUNNING") -> Node:
    return Node(host, f"{host}:{port}", "/rack", state, (), EMPTY, EMPTY, EMPTY)


def hosts(count: int) -> list[Node]:
    return [node(f"n{number:03}") for number in range(count)]


def test_twenty_nodes_are_chosen_unless_all_or_some_are_named() -> None:
    known = [*hosts(50), node("lost", state="LOST")]
    assert [one.host for one in choose_nodes(known, (), everything=False)] == [
        f"n{number:03}" for number in range(20)
    ]
    assert len(choose_nodes(known, (), everything=True)) == 50
    named = choose_nodes(known, ("n030", "n002:1"), everything=False)
    assert [one.host for one in named] == ["n002", "n030"]


@pytest.mark.parametrize("name", ["elsewhere", "lost", "n001:2"])
def test_a_node_that_does_not_run_is_refused_with_one_sentence(name: str) -> None:
    known = [*hosts(6), node("lost", state="LOST")]
    with pytest.raises(UsageError) as caught:
        choose_nodes(known, ("n001", name), everything=False)
    assert caught.value.message == f"There is no running node {name}."
    assert caught.value.fix == "Running nodes are n000, n001, n002, n003, n004 …."


@pytest.mark.parametrize(
    ("queue", "count"),
    [
        (None, 1),  # Unknown.
        (Size(), 1),
        (Size(8192, 8), 1),  # 5 % are 409 MiB: less than the master; at least one.
        (Size(8192 * 10, 80), 3),  # 4096 MiB and 4 vcores: the vcores limit.
        (Size(8192 * 10, 0), 14),  # Vcores without a limit.
        (Size(1 << 24, 1 << 20), 20),  # Never more than 20 in one job.
    ],
)
def test_probes_and_their_master_use_five_percent_of_the_queue(
    queue: Size | None, count: int
) -> None:
    assert probes_at_once(queue, MASTER, PROBE) == count
    if queue is not None and count > 1:
        for limit, master, probe in zip(queue, MASTER, PROBE, strict=True):
            assert not limit or master + count * probe <= limit * 0.05


def test_hosts_are_probed_in_batches_and_never_divided() -> None:
    groups = [[node("a", 1), node("a", 2)], [node("b")], [node("c")], [node("d")]]
    sizes = [[len(group) for group in batch] for batch in _batches(groups, 2)]
    assert sizes == [[2], [1, 1], [1]]
    assert [len(batch) for batch in _batches(groups, 1)] == [1, 1, 1, 1]


def test_a_node_without_an_answer_is_asked_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may only have had room later; the last one never has."""
    asked: list[list[str]] = []

    def run(_session: Any, spec: list[str], _bundle: Any) -> tuple[dict[str, Any], str]:
        asked.append(spec)
        late = {"n002": len(spec) == 1, "n003": False}
        found = {f"{host}:7": good() for host in spec if late.get(host, True)}
        return found, "No container came."

    monkeypatch.setattr(nodes, "_bundle", lambda: None)
    monkeypatch.setattr(nodes, "_spec", lambda *_: None)
    monkeypatch.setattr(nodes, "_at_once", lambda *_: 4)
    monkeypatch.setattr(
        nodes, "_with_roles", lambda _spec, groups: [group[0].host for group in groups]
    )
    monkeypatch.setattr(nodes, "_run", run)
    said: list[str] = []
    rows = nodes.probe_nodes(cast(Any, None), cast(Any, None), hosts(6), said.append)
    assert asked == [
        ["n000", "n001", "n002", "n003"], ["n002"], ["n003"], ["n004", "n005"],
    ]  # fmt: skip
    assert [row.status.value for row in rows] == ["ok", "ok", "ok", "error", "ok", "ok"]
    assert rows[3].problems[0][0] == "The node gave no answer: No container came."
    assert said == ["Probing 1 to 4 of 6 nodes.", "Probing 5 to 6 of 6 nodes."]


def good() -> dict[str, Any]:
    return {
        "node": "n1:45454",
        "python": {"version": "3.9.2", "path": "/usr/bin/python3"},
        "gpus": {"names": ["A100", "A100"], "driver": "550.54"},
        "disk": {"free": 1 << 40, "used": 0.2},
        "clock": {"ahead": -0.4},
        "names": {"name": "n1", "address": "10.0.0.1", "back": "n1.example"},
        "ports": {"count": 5, "closed": {}},
        "docker": {"version": "27.1"},
        "network": {"address": "10.0.0.1", "container": False, "own": True},
        "peers": {"count": 0, "closed": {}},
    }


def test_a_good_node_is_one_row_without_problems() -> None:
    row = judge("n1:45454", good())
    assert (row.status, row.problems) == (Status.OK, [])
    assert table_rows([row]) == [
        ("n1:45454", "3.9.2", "2 A100", "550.54", "1.1 TB free", "-0 s", "10.0.0.1 n1.example",
         "5/5", "27.1", "10.0.0.1"),
    ]  # fmt: skip
    assert summary([row], 50) == "1 of 50 running nodes probed, 0 with problems."


@pytest.mark.parametrize(
    ("question", "change", "status", "sentence"),
    [
        ("python", {"version": "3.6.8"}, "error", "is Python 3.6.8, and jobs need 3.8 or newer."),
        ("disk", {"used": 0.95}, "error", "The disk of the containers is 95% full."),
        ("disk", {"free": 1 << 20}, "warning", "The disk of the containers is 20% full."),
        ("clock", {"ahead": -400}, "warning", "The clock is 400 s off the ResourceManager's."),
        ("names", {"back": ""}, "warning", "n1 is 10.0.0.1, but 10.0.0.1 has no name."),
        (
            "ports",
            {"closed": {"NodeManager n2:8042": "Connection refused"}},
            "error",
            "Cannot be reached from there: NodeManager n2:8042: Connection refused.",
        ),
        (
            "peers",
            {"count": 1, "closed": {"node1:0": "no answer"}},
            "error",
            "Cannot be reached from there: node1:0: no answer.",
        ),
        ("network", {"own": False}, "warning", "The container has another address than its node"),
        ("gpus", {"error": "driver mismatch"}, "warning", "GPUs cannot be determined: driver mis"),
        ("names", {"error": "no name"}, "error", "DNS cannot be determined: no name."),
    ],
)
def test_each_problem_is_one_sentence_with_a_fix(
    question: str, change: dict[str, Any], status: str, sentence: str
) -> None:
    report = good()
    report[question] = {**report[question], **change}
    row = judge("n1", report)
    assert row.status.value == status
    [(said, fix)] = row.problems
    assert sentence in said
    assert fix.endswith(".")


@pytest.mark.parametrize("report", [{}, {"python": 3}, {"disk": {"free": "much", "used": None}}])
def test_a_malformed_report_is_a_row_and_no_exception(report: dict[str, Any]) -> None:
    assert judge("n1", {**good(), **report} if report else {}).status is Status.ERROR


def test_a_node_without_an_answer_is_a_row_with_the_reason() -> None:
    row = judge("n1", None, "No container came within 90 s.")
    assert row.status is Status.ERROR
    assert row.problems[0][0] == "The node gave no answer: No container came within 90 s."
    assert set(table_rows([row])[0][1:]) == {"-"}


def test_only_the_line_of_the_probe_is_read() -> None:
    line = f"{node_probe.MARK} " + json.dumps(good())
    assert read_report(f"welcome\n{line}\nbye\n".encode()) == good()
    for output in (b"", b"welcome\n", f"{node_probe.MARK} [1]".encode(), b"\xff\xfe"):
        assert read_report(output) is None
    assert read_report(f"{node_probe.MARK} {'[' * 100_000}".encode()) is None


@pytest.fixture
def cluster_clock() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)  # With the header `Date`.

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_the_probe_answers_every_question_within_its_limit(
    cluster_clock: str, tmp_path: Path
) -> None:
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))  # Nothing listens there.
    host, port = silent.getsockname()
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexec sleep 60\n")
    docker.chmod(0o755)
    request = {
        "targets": [["open", "127.0.0.1", int(cluster_clock.rpartition(":")[2])],
                    ["closed", host, port]],
        "clock": [f"http://{host}:{port}", cluster_clock],
        "ca": "",
        "seconds": 2.0,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-I", node_probe.__file__, json.dumps(request)],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "NM_HOST": "localhost", "NM_PORT": "45454"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    report = read_report(done.stdout)
    silent.close()
    assert report is not None
    assert report["node"] == "localhost:45454"
    assert report["ports"] == {
        "count": 2, "closed": {f"closed {host}:{port}": "Connection refused"},
    }  # fmt: skip
    assert abs(report["clock"]["ahead"]) < 5
    assert "timed out" in report["docker"]["error"]
    assert report["network"]["own"]
    row = judge("localhost:45454", report)
    assert row.cells["ports"] == "1/2"
    assert row.cells["Docker"] == "?"


def test_two_probes_of_one_job_meet(tmp_path: Path) -> None:
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    members = json.dumps({"node0": [f"127.0.0.1:{ports[0]}"], "node1": [f"127.0.0.1:{ports[1]}"]})
    request = json.dumps({"targets": [], "clock": [], "ca": "", "seconds": 1.0})
    probes = [
        subprocess.Popen(
            [sys.executable, "-I", node_probe.__file__, request],
            env={
                "PATH": "/usr/bin:/bin",
                "SUBMARINE_ROLE": f"node{number}",
                "SUBMARINE_INDEX": "0",
                "SUBMARINE_PORT": str(ports[number]),
                "CLUSTER_SPEC": members,
            },
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    for one in probes:
        report = read_report(one.communicate(timeout=60)[0])
        assert report is not None
        assert report["peers"] == {"count": 1, "closed": {}}
