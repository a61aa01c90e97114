"""The live stream of a job's port on the side of the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, StreamBrokenError
from tests.streams import read_stream
from tests.unit.jobs.access.fake_port import Port


def client_of(port: Port) -> AgentClient:
    host, number = port.server.server_address[:2]
    return AgentClient(AgentAddress(str(host), int(number), port.secret))


def test_lines_of_any_size_arrive_in_order(tmp_path: Path) -> None:
    sizes = [0, 10, 600_000, 0, 65_536, 1_000_000, 3]
    port = Port(tmp_path, [[{"type": "ping", "n": n, "x": "y" * n} for n in sizes]])
    assert [line["n"] for line in read_stream(client_of(port))] == sizes
    port.close()


def test_a_line_that_is_too_long_breaks_the_stream(tmp_path: Path) -> None:
    port = Port(tmp_path, [[{"type": "ping"}, {"type": "ping", "x": "y" * (5 << 20)}]])
    lines = read_stream(client_of(port))
    assert next(lines) == {"type": "ping"}
    with pytest.raises(StreamBrokenError, match="too long"):
        next(lines)
    port.close()
