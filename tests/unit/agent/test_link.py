"""Parts of an agent in task mode: kept lines, the dead man, ports, orders, its last line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.agent.gang_task.end_messages import ended_line
from submarine_runtime.agent.gang_task.orders import Orders
from submarine_runtime.agent.link.outbox import MAX_KEPT, Outbox, encoded
from submarine_runtime.agent.link.silence_watchdog import SilenceWatchdog
from submarine_runtime.agent.program import Ending
from submarine_runtime.agent.program.ending import ProgramFacts, determine_ending
from submarine_runtime.network import Reservation, address_of, interface_of, own_address
from submarine_runtime.processes import Guard
from submarine_runtime.protocol import (
    MAX_LINK_LINE,
    EndReason,
    Failure,
    TracebackFrame,
    check_agent_line,
    check_order,
    read_link_line,
)
from tests.processes import is_gone
from tests.waiting import until


def taken(outbox: Outbox) -> list[object]:
    return [json.loads(line)["v"] for line in outbox.take().splitlines()]


def test_lines_are_kept_until_they_have_surely_been_read() -> None:
    outbox = Outbox()
    for value in (1, 2):
        outbox.add({"type": "event", "v": value})
    assert taken(outbox) == [1, 2]
    assert taken(outbox) == []
    beat = outbox.taken
    outbox.add({"type": "event", "v": 3})
    outbox.confirm(beat)
    outbox.rewind()  # the link broke: what was not acknowledged is sent again
    assert taken(outbox) == [3]


def test_the_last_state_is_sent_on_every_new_link() -> None:
    outbox = Outbox()
    outbox.add({"type": "state", "v": "running"})
    outbox.add({"type": "event", "v": "e"})
    assert taken(outbox) == ["running", "e"]
    outbox.confirm(outbox.taken)
    outbox.rewind()
    assert taken(outbox) == ["running"]
    outbox.sent()
    assert outbox.wait_sent(0)
    assert not outbox.wait_read(0)
    outbox.confirm(outbox.taken)
    assert outbox.wait_read(0)


def test_what_is_kept_is_bounded_and_a_line_is_not_too_long() -> None:
    outbox = Outbox()
    for value in range(MAX_KEPT + 5):
        outbox.add({"type": "event", "v": value})
    assert taken(outbox)[0] == 5
    with pytest.raises(ValueError, match="too long"):
        outbox.add({"v": "x" * MAX_LINK_LINE})


def test_giving_up_ends_the_wait_for_sent_messages() -> None:
    outbox = Outbox()
    outbox.add({"v": 1})
    threading.Timer(0.05, outbox.give_up).start()
    began = time.monotonic()
    assert not outbox.wait_sent(300)
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_the_dead_man_counts_from_the_sending() -> None:
    fired: list[float] = []
    watchdog = SilenceWatchdog(lambda: fired.append(time.monotonic()))
    now, hour = time.monotonic(), 3600.0
    # Heard now, and sent an hour ago: that is what counts.
    watchdog.acknowledged(now - hour, hour + 1.5)
    watchdog.acknowledged(now - hour + 0.2, hour + 1.5)
    until(lambda: fired, "the dead man counts from the hearing")
    assert fired[0] - now >= 1.7
    assert watchdog.fired
    watchdog.acknowledged(time.monotonic(), hour)
    still_fired = watchdog.fired
    watchdog.stop()
    assert (still_fired, len(fired)) == (False, 1)


def test_reserved_ports_are_ours_until_they_are_released() -> None:
    ours = Reservation(3)
    assert len(set(ours.ports)) == 3
    port = ours.ports[0]
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("", port))
    with socket.socket() as sharing:  # what gRPC does
        sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sharing.bind(("", port))
        sharing.listen()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    ours.release()
    with socket.socket() as plain:
        plain.bind(("", port))
    ours.hold()
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("", port))
    ours.release()


def test_two_agents_never_reserve_the_same_port() -> None:
    """Of one user too, whose sockets may share ports."""
    everything = [Reservation(8) for _ in range(50)]
    ports = [port for one in everything for port in one.ports]
    assert len(set(ports)) == len(ports) == 400
    for one in everything:
        one.release()


def test_the_interface_that_was_named_is_taken() -> None:
    assert address_of("lo") == "127.0.0.1"
    assert interface_of("127.0.0.1") == "lo"
    assert own_address("10.0.0.1", "lo", False) == ("127.0.0.1", "lo")
    assert own_address("127.0.0.1", None, True) == ("127.0.0.1", "lo")
    with pytest.raises(ValueError, match="no-such"):
        own_address("10.0.0.1", "no-such", False)


def test_orders_come_in_order_and_end() -> None:
    orders = Orders(lambda: None, lambda seconds: None)
    assert orders.peek() is None
    for kind in ("welcome", "start", "leave"):
        orders.add({"type": kind})
    assert orders.wait_welcome()
    assert orders.must_end
    assert [order["type"] for order in (orders.pop(), orders.get()) if order] == [
        "start",
        "leave",
    ]
    orders.add({"type": "start"})
    orders.close()
    assert orders.get() is None
    assert orders.must_end


def test_a_huge_failure_fits_on_the_line() -> None:
    frames = [TracebackFrame("f" * 4096, 1, "g" * 4096, "c" * 4096) for _ in range(100)]
    failure = Failure("SyntaxError", "m" * 4096, frames, "t" * 65536)
    ending = Ending(EndReason.PROGRAM_ERROR, "d" * 9000, 1, None, failure)
    line = ended_line(ending, 1, 2, {"stdout": 5}, {"outputs": [{"path": "p" * 4000}] * 500})
    assert len(json.dumps(line)) < MAX_LINK_LINE
    assert line["failure"]["frames"][-1]["line"] == 1
    assert line["retry"] == "no"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (1, EndReason.ADDRESS_IN_USE),
        (-6, EndReason.ADDRESS_IN_USE),
        (0, EndReason.SUCCEEDED),
        (-9, EndReason.KILLED_BY_SIGNAL),
    ],
)
def test_a_taken_port_explains_a_failure_only(status: int, reason: EndReason) -> None:
    assert (
        determine_ending(ProgramFacts(status, port_taken="bind: Address already in use")).reason
        is reason
    )


def test_what_is_guarded_dies_with_the_agent(tmp_path: Path) -> None:
    source = (
        "import os, subprocess, sys, time\n"
        "from submarine_runtime.processes.guard import Guard\n"
        "guard = Guard()\n"
        "started = [subprocess.Popen(['sleep', '60'], start_new_session=True) for _ in range(2)]\n"
        "guard.always(started[0].pid)\n"
        "guard.watch({started[1].pid})\n"
        "print(*(one.pid for one in started), flush=True)\n"
        "time.sleep(60)\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    pids = [int(word) for word in agent.stdout.readline().split()]
    agent.kill()
    agent.communicate()
    until(lambda: all(is_gone(pid) for pid in pids), "they outlive the agent", 60)
    Guard().release()


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b'{"n":99999999999999999999}',
        b'{"n":1e999}',
        b'{"n":NaN}',
        b"[]",
        b"\xff",
        b"",
    ],
)
def test_a_line_that_is_malformed_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_link_line(data)


def test_what_an_agent_sends_can_always_be_read() -> None:
    line = {"type": "state", "detail": "\ud800x", "progress": float("nan"), "n": 1 << 70}
    assert read_link_line(encoded(line)) == {
        "type": "state",
        "detail": "?x",
        "progress": None,
        "n": None,
    }


def test_text_and_integers_that_cannot_be_written_again_are_replaced() -> None:
    data = b'{"detail":"\\ud800x","n":9223372036854775808,"least":-9223372036854775808}'
    assert read_link_line(data) == {"detail": "?x", "n": None, "least": -(1 << 63)}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({}, "no type"),
        ({"type": "heartbeat"}, "no 'n'"),
        ({"type": "heartbeat", "n": "1"}, "'n'"),
        ({"type": "register", "seat": "a-0.1"}, "no 'nonce'"),
        ({"type": "register", "seat": "a-0.1", "nonce": "", "agent_port": 65536}, "'agent_port'"),
        ({"type": "register", "seat": "a-0.1", "nonce": "", "extra": {"a": "x" * 300}}, "'extra'"),
        ({"type": "state", "state": "ended", "outputs": [{"path": 1, "size": 1}]}, "'outputs'"),
        ({"type": "state", "state": "ended", "logs": {"stdout": -1}}, "'logs'"),
        ({"type": "left", "missing": {}}, "'missing'"),
    ],
)
def test_a_malformed_line_of_an_agent_is_refused_by_name(line: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        check_agent_line(line)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "ack"},
        {"type": "ack", "n": []},
        {"type": "welcome", "heartbeat": "1"},
        {"type": "start", "epoch": 1, "attempt": 1, "members": [{"task": "worker:0"}]},
    ],
)
def test_a_malformed_order_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"line of type"):
        check_order(line)
