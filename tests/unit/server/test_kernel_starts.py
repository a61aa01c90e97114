"""Messages to a page about the kernels in containers that its server starts."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.tracking import Origin
from submarine_kernel.remote import PendingStart
from submarine_kernel.remote.pending_starts import pending
from submarine_server.channel import Credit, feeds
from submarine_server.channel.feeds import FEEDS


def test_a_page_gets_each_start_and_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "STARTS_PAUSE", 0)
    asyncio.run(_hear())


async def _hear() -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    details = SimpleNamespace(
        visible_origin=lambda origin: Origin(origin.notebook.removeprefix("/home/ada/"))
    )
    services: Any = SimpleNamespace(service=SimpleNamespace(details=details))
    feed = FEEDS["starts"](services, {}, heard.put, Credit())
    following = asyncio.ensure_future(feed.run())

    async def until(*starts: dict[str, str]) -> None:
        while await heard.get() != {"type": "starts", "starts": list(starts)}:
            pass

    async with asyncio.timeout(60):
        await until()
        told = {"kernel": "gpu4", "notebook": "a.ipynb"}
        with pending(start := PendingStart("gpu4", "/home/ada/a.ipynb")):
            await until({**told, "words": ""})
            words = "Packing: 34 %\n<b>of</b> 700 MB"
            threading.Thread(target=start.update, args=(words,)).start()
            await until({**told, "words": "Packing: 34 % <b>of</b> 700 MB"})
        await until()
    following.cancel()
    await asyncio.wait([following])
    start.update("no listener")
    await asyncio.sleep(0)
    assert heard.empty()
