"""What the pages of a server share: begun with the first that looks, ended with the last.

Knows neither what it is nor how it is kept up to date (``displays``, ``runs``, ``metrics``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


@dataclass(eq=False)
class _Held(Generic[Thing]):
    thing: Thing
    task: asyncio.Task[None]
    pages: int = 0


class Shared(Generic[Key, Thing]):
    """One thing for each key, for all who look at it at the same time.

    Parameters
    ----------
    make
        A new one, which nothing is known of.
    work
        Keeps one up to date; cancelled when nobody looks any more.
    spent
        Whether who comes now needs another: this one failed, say.
    """

    def __init__(
        self,
        make: Callable[[], Thing],
        work: Callable[[Key, Thing], Coroutine[Any, Any, None]],
        spent: Callable[[Thing], bool],
    ) -> None:
        self._make, self._work, self._spent = make, work, spent
        self._held: dict[Key, _Held[Thing]] = {}

    @contextlib.asynccontextmanager
    async def open(self, key: Key) -> AsyncIterator[Thing]:
        """The thing of that key, while a page shows it."""
        held = self._held.get(key)
        if held is None or self._spent(held.thing):
            thing = self._make()
            task = asyncio.get_running_loop().create_task(self._work(key, thing))
            held = self._held[key] = _Held(thing, task)
        held.pages += 1
        try:
            yield held.thing
        finally:
            held.pages -= 1
            if not held.pages:
                held.task.cancel()
                if self._held.get(key) is held:
                    del self._held[key]
