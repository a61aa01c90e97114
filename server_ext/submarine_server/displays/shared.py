"""Values that are kept up to date while at least one connection uses them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(eq=False)
class _Entry(Generic[Value]):
    value: Value
    task: asyncio.Task[None]
    users: int = 0


class SharedPool(Generic[Key, Value]):
    """One value per key, shared by concurrent users.

    Parameters
    ----------
    make
        Creates an empty value.
    work
        Keeps a value up to date; cancelled when its last user leaves.
    is_stale
        Whether a new user needs a new value, for example after a failure.
    """

    def __init__(
        self,
        make: Callable[[], Value],
        work: Callable[[Key, Value], Coroutine[Any, Any, None]],
        is_stale: Callable[[Value], bool],
    ) -> None:
        self._make, self._work, self._is_stale = make, work, is_stale
        self._entries: dict[Key, _Entry[Value]] = {}

    @contextlib.asynccontextmanager
    async def open(self, key: Key) -> AsyncIterator[Value]:
        """Yield the value of a key and keep it up to date meanwhile."""
        entry = self._entries.get(key)
        if entry is None or self._is_stale(entry.value):
            value = self._make()
            task = asyncio.get_running_loop().create_task(self._work(key, value))
            entry = self._entries[key] = _Entry(value, task)
        entry.users += 1
        try:
            yield entry.value
        finally:
            entry.users -= 1
            if not entry.users:
                entry.task.cancel()
                if self._entries.get(key) is entry:
                    del self._entries[key]
