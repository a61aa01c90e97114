"""Ports of a range: reservations, listeners and the page on YARN never share one."""

from __future__ import annotations

import socket
from contextlib import closing, suppress

import pytest

from submarine_runtime.network import (
    PortRangeError,
    Reservation,
    bind_port,
    parse_port_range,
)
from submarine_runtime.yarn import PageServer


@pytest.fixture
def ports() -> str:
    """A range of three ports that were free just now."""
    for first in range(61000, 65000, 3):
        with suppress(OSError), closing(ThreePorts(first)):
            return f"{first}-{first + 2}"
    raise AssertionError("there are no three free ports in a row")


class ThreePorts:
    """Three ports in a row, bound until ``close``."""

    def __init__(self, first: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            for port in range(first, first + 3):
                self._sockets.append(socket.socket())
                self._sockets[-1].bind(("", port))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        for one in self._sockets:
            one.close()


def test_a_range_has_both_its_ends() -> None:
    assert parse_port_range("20000-20100") == range(20000, 20101)
    assert parse_port_range(" 1024-65535 ") == range(1024, 65536)


@pytest.mark.parametrize(
    "text",
    [
        *("", "20000", "20000-", "20100-20000", "20000-20000", "80-90", "65000-65536", "1-2-3"),
        *("a-b", "20000 - 20100", "20000-20100,30000-30100", "\u0662-20100"),
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="must be LOW-HIGH, two ports from 1024 to 65535, such as"):
        parse_port_range(text)


def test_a_range_is_used_up_and_no_port_is_given_twice(ports: str) -> None:
    reserved = Reservation(1, ports)
    first = bind_port("127.0.0.1", ports=ports)
    second = bind_port("0.0.0.0", ports=ports)
    used = {reserved.ports[0], first.getsockname()[1], second.getsockname()[1]}
    assert used == set(parse_port_range(ports))
    for make in (
        lambda: Reservation(1, ports),
        lambda: bind_port("127.0.0.1", ports=ports),
    ):
        with pytest.raises(PortRangeError, match=f"^No port of port_range {ports} is free on "):
            make()
    reserved.release()
    again = Reservation(1, ports)
    assert again.ports == reserved.ports
    again.release()
    first.close()
    second.close()


def test_a_reservation_that_does_not_fit_leaves_no_port_bound(ports: str) -> None:
    with pytest.raises(PortRangeError):
        Reservation(4, ports)
    Reservation(3, ports).release()


def test_a_coordinator_listens_again_at_its_port_after_a_connection(ports: str) -> None:
    listener = bind_port("127.0.0.1", ports=ports)
    port = listener.getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    accepted = listener.accept()[0]
    accepted.close()  # The side that closes first keeps the port in TIME-WAIT.
    assert client.recv(1) == b""
    client.close()
    listener.close()
    again = bind_port("127.0.0.1", port, ports)
    assert again.getsockname()[1] == port
    again.close()


def test_the_page_on_yarn_listens_in_the_range(ports: str) -> None:
    page = PageServer(lambda host: bind_port(host, ports=ports), "127.0.0.1", None, lambda: b"")
    assert int(page.url.rstrip("/").rpartition(":")[2]) in parse_port_range(ports)
    page._listener.close()
