"""Which connections a listener keeps when there are too many: a new one replaces an old one.

For every port of the project at which a peer is not known before it has spoken. A listener that
refused new connections could be kept busy by idle ones, and its owner would not get in. Knows no
sockets. Stands alone: the notebook container gets this file without the rest of the package.
"""

from __future__ import annotations

from typing import Generic, Iterator, TypeVar

T = TypeVar("T")


class ConnectionLimit(Generic[T]):
    """Connections in the order of their age, counted by address.

    Not thread-safe. ``touch`` makes a connection the newest one, so that "oldest" means idle for
    the longest time where a listener calls it.

    Parameters
    ----------
    per_address
        Most connections from one address.
    overall
        Most connections in all.
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
        """Add a connection; those that the caller must close now, already removed.

        The oldest one from the same address gives way, or, at the overall limit, the oldest one
        from the address that has most connections.
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
        """Make a connection the newest one; nothing if it was removed."""
        if connection in self._known:
            address = self._known.pop(connection)[0]
            self._known[connection] = (address, now)
            same = self._by_address[address]
            del same[connection]
            same[connection] = None

    def remove(self, connection: T) -> bool:
        """Forget a connection; whether it was known."""
        if connection not in self._known:
            return False
        address = self._known.pop(connection)[0]
        same = self._by_address[address]
        del same[connection]
        if not same:
            del self._by_address[address]
        return True

    def older_than(self, moment: float) -> list[T]:
        """Connections that were added, or touched, before ``moment``; they are not removed."""
        found = []
        for connection, (_, since) in self._known.items():
            if since >= moment:
                break
            found.append(connection)
        return found
