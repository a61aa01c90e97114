"""The exchanges of the scaling benchmarks, over real connections on loopback."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import collectives

HOST = "127.0.0.1"


def gradients_of(rank: int, count: int) -> collectives.Values:
    """Whole numbers, different for each member and each place: their sum is exact."""
    return (np.arange(count, dtype=np.float32) % 1000) * (rank + 1)


def sum_of(size: int, count: int) -> collectives.Values:
    return (np.arange(count, dtype=np.float32) % 1000) * (size * (size + 1) // 2)


def together(
    size: int, member: Callable[[int], list[collectives.Values]]
) -> list[list[collectives.Values]]:
    with ThreadPoolExecutor(size) as pool:
        return [*pool.map(member, range(size))]


# More than the buffers of a connection hold; not divisible; fewer values than members.
@pytest.mark.slow
@pytest.mark.parametrize("count", [250_000, 1_001, 5, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_ring_gives_every_member_the_sum(tmp_path: Path, size: int, count: int) -> None:
    def member(rank: int) -> list[collectives.Values]:
        ring = collectives.join_ring(tmp_path, HOST, rank, size)
        results = []
        for _ in range(3):
            values = gradients_of(rank, count)
            ring.all_reduce(values)
            results.append(values)
        ring.close()
        return results

    for results in together(size, member):
        for values in results:
            np.testing.assert_array_equal(values, sum_of(size, count))


@pytest.mark.slow
def test_ring_sends_larger_arrays_than_the_connections_hold(tmp_path: Path) -> None:
    count = 4_000_000

    def member(rank: int) -> list[collectives.Values]:
        ring = collectives.join_ring(tmp_path, HOST, rank, 2)
        values = gradients_of(rank, count)
        ring.all_reduce(values)
        ring.close()
        return [values]

    for (values,) in together(2, member):
        np.testing.assert_array_equal(values, sum_of(2, count))


@pytest.mark.parametrize("size", [1, 4])
def test_parameter_server_gives_every_worker_the_sum(tmp_path: Path, size: int) -> None:
    count, steps = 250_000, 3
    served: list[int] = []

    def serve(listener: socket.socket) -> None:
        connections = [listener.accept()[0] for _ in range(size)]
        served.append(collectives.serve_parameters(connections, count))
        for connection in connections:
            connection.close()

    def worker(rank: int) -> list[collectives.Values]:
        exchange = collectives.ServerExchange(collectives.connect_to(tmp_path, "server"))
        results = []
        for _ in range(steps):
            values = gradients_of(rank, count)
            exchange.all_reduce(values)
            results.append(values)
        exchange.close()
        return results

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        collectives.publish_address(tmp_path, "server", listener)
        for results in together(size, worker):
            for values in results:
                np.testing.assert_array_equal(values, sum_of(size, count))
        thread.join(10)
    assert served == [steps]


def test_a_member_that_ends_is_an_error_of_the_next(tmp_path: Path) -> None:
    first, second = socket.socketpair()
    third, fourth = socket.socketpair()
    ring = collectives.Ring(1, 2, following=first, preceding=third)
    fourth.close()
    with pytest.raises(ConnectionError, match="Member 1: the previous member has ended"):
        ring.all_reduce(np.zeros(10, np.float32))
    ring.close()
    second.close()


def test_a_silent_member_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(collectives, "TIMEOUT", 0.05)
    first, second = socket.socketpair()
    third, fourth = socket.socketpair()
    ring = collectives.Ring(0, 2, following=first, preceding=third)
    with pytest.raises(TimeoutError, match="Member 0: no byte"):
        ring.all_reduce(np.zeros(10, np.float32))
    ring.close()
    second.close()
    fourth.close()
    with pytest.raises(TimeoutError, match="Member 7 has no address"):
        collectives.connect_to(tmp_path, "7")


def test_an_array_that_ends_in_the_middle_is_an_error() -> None:
    sender, receiver = socket.socketpair()
    sender.sendall(b"\0" * 10)
    sender.close()
    with pytest.raises(ConnectionError, match="ended after 10 of 40 bytes"):
        collectives.receive_all(receiver, np.zeros(10, np.float32))
    assert not collectives.receive_all(receiver, np.zeros(10, np.float32))
    receiver.close()
