"""Sum arrays over the members of a training, over TCP: ring all-reduce and parameter server.

The members find each other by files of a directory that all can read, because the launchers have no
other rendezvous in common: the port of ``MASTER_PORT`` belongs to torchrun itself.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]
#: Seconds without any byte after which a member gives up.
TIMEOUT = 60.0


class Exchange(Protocol):
    """A member's part in the exchange of gradients."""

    def all_reduce(self, values: Values) -> None:
        """Replace ``values`` by the sum over all members; return when this member has it."""


class Ring:
    """Ring all-reduce: each member sends and receives 2 (N - 1) / N of the array.

    Parameters
    ----------
    rank, size
        Number of this member, and of all members.
    following, preceding
        Connections to the next member and from the previous one; not used if ``size`` is 1.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        following: socket.socket | None = None,
        preceding: socket.socket | None = None,
    ) -> None:
        self._rank, self._size = rank, size
        self._following, self._preceding = following, preceding
        for connection in (following, preceding):
            if connection is not None:
                connection.setblocking(False)

    def all_reduce(self, values: Values) -> None:
        """See ``Exchange.all_reduce``."""
        size, rank = self._size, self._rank
        parts = np.array_split(values, size)
        received = np.empty_like(parts[0])
        # After these steps each member has the sum of one part: the part after its own number.
        for step in range(size - 1):
            part = parts[(rank - step - 1) % size]
            self._exchange(parts[(rank - step) % size], received[: len(part)])
            np.add(part, received[: len(part)], out=part)
        for step in range(size - 1):
            self._exchange(parts[(rank - step + 1) % size], parts[(rank - step) % size])

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._following, self._preceding):
            if connection is not None:
                connection.close()

    def _exchange(self, sent: Values, received: Values) -> None:
        """Send to the next member and receive from the previous one at the same time.

        All members send at once: if they did not receive meanwhile, none would go on as soon as the
        buffers of the connections are full.
        """
        assert self._following is not None
        assert self._preceding is not None
        outgoing, incoming = _bytes_of(sent), _bytes_of(received)
        while outgoing or incoming:
            readable, writable, _ = select.select(
                [self._preceding] if incoming else [],
                [self._following] if outgoing else [],
                [],
                TIMEOUT,
            )
            if not readable and not writable:
                raise TimeoutError(f"Member {self._rank}: no byte in {TIMEOUT:g} s.")
            if readable:
                count = self._preceding.recv_into(incoming)
                if not count:
                    raise ConnectionError(f"Member {self._rank}: the previous member has ended.")
                incoming = incoming[count:]
            if writable:
                outgoing = outgoing[self._following.send(outgoing) :]


class ServerExchange:
    """A worker of a parameter server: sends its whole array and receives the sum."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT)
        self._connection = connection

    def all_reduce(self, values: Values) -> None:
        """See ``Exchange.all_reduce``."""
        self._connection.sendall(_bytes_of(values))
        if not receive_all(self._connection, values):
            raise ConnectionError("The parameter server has ended.")

    def close(self) -> None:
        """Close the connection; the server ends when all workers have."""
        self._connection.close()


def serve_parameters(connections: Sequence[socket.socket], count: int) -> int:
    """Be the parameter server of these workers until they end; return the number of steps.

    Arrays have ``count`` values. The server receives from all workers at the same time, and sends
    to all at the same time, so that its link is always in use.
    """
    gradients = np.empty((len(connections), count), np.float32)
    total = np.empty(count, np.float32)
    steps = 0
    for connection in connections:
        connection.settimeout(TIMEOUT)
    with ThreadPoolExecutor(len(connections)) as pool:
        while all([*pool.map(receive_all, connections, gradients)]):
            np.sum(gradients, axis=0, out=total)
            data = _bytes_of(total)
            for done in [pool.submit(connection.sendall, data) for connection in connections]:
                done.result()
            steps += 1
    return steps


def receive_all(connection: socket.socket, values: Values) -> bool:
    """Fill ``values``; return False if the peer has ended before the first byte.

    Raises
    ------
    ConnectionError
        If the peer ends after the first byte.
    """
    missing = _bytes_of(values)
    size = len(missing)
    while missing:
        count = connection.recv_into(missing)
        if not count:
            if len(missing) == size:
                return False
            raise ConnectionError(f"The peer ended after {size - len(missing)} of {size} bytes.")
        missing = missing[count:]
    return True


def join_ring(directory: Path, host: str, rank: int, size: int) -> Ring:
    """Connect to the neighbours; each member calls this with its own address ``host``."""
    if size == 1:
        return Ring(rank, size)
    with socket.create_server((host, 0)) as listener:
        publish_address(directory, str(rank), listener)
        following = connect_to(directory, str((rank + 1) % size))
        listener.settimeout(TIMEOUT)
        preceding, _ = listener.accept()
    return Ring(rank, size, following, preceding)


def publish_address(directory: Path, name: str, listener: socket.socket) -> None:
    """Write the address of a listener for `connect_to`."""
    host, port = listener.getsockname()[:2]
    written = directory / f".{name}.address"
    written.write_text(f"{host} {port}")
    written.rename(directory / f"{name}.address")


def connect_to(directory: Path, name: str) -> socket.socket:
    """Wait until a member has published its address, and connect.

    Raises
    ------
    TimeoutError
        If it has not published it in time.
    """
    path = directory / f"{name}.address"
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Member {name} has no address after {TIMEOUT:g} s.")
        time.sleep(0.02)
    host, _, port = path.read_text().partition(" ")
    connection = socket.create_connection((host, int(port)), TIMEOUT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _bytes_of(values: Values) -> memoryview:
    return values.view(np.uint8).data
