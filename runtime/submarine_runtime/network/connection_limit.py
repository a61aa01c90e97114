"""Limit the connections of a listener: a new connection replaces the oldest one.

For ports at which a peer authenticates only after it has connected. A listener that refuses new
connections at its limit can be blocked by idle ones. This module does not use sockets. It imports
nothing from this package, because it is copied alone into notebook containers.
"""

from __future__ import annotations

from typing import Generic, Iterator, TypeVar

T = TypeVar("T")


class ConnectionLimit(Generic[T]):
    """Connections in order of age, counted by address.

    Not thread-safe. ``touch`` makes a connection the newest one; if the listener calls it for each
    request, the oldest connection is the one that has been idle longest.

    Parameters
    ----------
    per_address
        Maximum number of connections from one address.
    overall
        Maximum number of connections.
    """

    def __init__(self, per_address: int, overall: int) -> None:
        self._per_address, self._overall = per_address, overall
        self._known: dict[T, tuple[str, float]] = {}
        self._by_address: dict[str, dict[T, None]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, connection: object) -> bool:
        return connection in self._known

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._known))

    def add(self, connection: T, address: str, now: float) -> list[T]:
        """Add a connection and return the connections that the caller must close; they are removed.

        The oldest connection from the same address is replaced. At the overall limit it is the
        oldest connection from the address with the most connections.
        """
        self._known[connection] = (address, now)
        self._by_address.setdefault(address, {})[connection] = None
        if len(self._by_address[address]) <= self._per_address:
            if len(self._known) <= self._overall:
                return []
            address = max(self._by_address, key=lambda one: len(self._by_address[one]))
        oldest = next(iter(self._by_address[address]))
        self.remove(oldest)
        return [oldest]

    def touch(self, connection: T, now: float) -> None:
        """Make a connection the newest one; do nothing if it was removed."""
        if connection in self._known:
            address = self._known.pop(connection)[0]
            self._known[connection] = (address, now)
            same = self._by_address[address]
            del same[connection]
            same[connection] = None

    def remove(self, connection: T) -> bool:
        """Remove a connection; return whether it was registered."""
        if connection not in self._known:
            return False
        address = self._known.pop(connection)[0]
        same = self._by_address[address]
        del same[connection]
        if not same:
            del self._by_address[address]
        return True

    def older_than(self, time: float) -> list[T]:
        """Return connections that were added or touched before ``time``; they stay registered."""
        found = []
        for connection, (_, since) in self._known.items():
            if since >= time:
                break
            found.append(connection)
        return found
