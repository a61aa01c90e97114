"""A page's subscriptions, without a server: what it may cost and how it is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from submarine_jobs.errors import ClusterError, JobNotFoundError
from submarine_server.channel import Credit
from submarine_server.channel.feed import WINDOW, Feed
from submarine_server.channel.subscriptions import (
    MAX_SUBSCRIPTIONS,
    ConnectionClosedError,
    PageSubscriptions,
)


class Wire:
    """Takes what a page is sent, as fast as it is let."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.gone = False

    async def write(self, text: str) -> None:
        await self.open.wait()
        if self.gone:
            raise ConnectionClosedError
        self.sent.append(json.loads(text))


class Ticking(Feed):
    """Counts as fast as its page lets it."""

    kind = "ticking"
    made = 0

    async def run(self) -> None:
        while True:
            Ticking.made += 1
            await self.send({"type": "tick", "n": Ticking.made})
            await asyncio.sleep(0)


class Ending(Feed):
    kind = "ending"

    async def run(self) -> None:
        await self.send('{"type":"job","view":{}}')


def failing(error: Exception) -> type[Feed]:
    class Failing(Feed):
        kind = "failing"

        async def run(self) -> None:
            raise error

    return Failing


def with_page(
    test: Callable[[PageSubscriptions, Wire], Coroutine[Any, Any, None]], **kinds: type[Feed]
) -> None:
    async def run() -> None:
        wire = Wire()
        page = PageSubscriptions(None, wire.write, kinds)  # type: ignore[arg-type]
        try:
            await test(page, wire)
        finally:
            page.close()
            await asyncio.sleep(0)

    asyncio.run(run())


async def subscribe(page: PageSubscriptions, number: int, kind: str) -> None:
    await page.receive(json.dumps({"op": "subscribe", "id": number, "kind": kind}))


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_slow_page_costs_one_message_a_subscription() -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        wire.open.clear()
        Ticking.made = 0
        for number in range(3):
            await subscribe(page, number, "ticking")
        await turns(500)
        assert Ticking.made == 3
        wire.open.set()
        await turns(100)
        assert {message["id"] for message in wire.sent} == {0, 1, 2}

    with_page(test, ticking=Ticking)


def test_an_end_is_sent_and_frees_the_number() -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        for _ in range(2):
            await subscribe(page, 7, "ending")
            await turns()
            assert wire.sent[-2:] == [
                {"id": 7, "type": "job", "view": {}},
                {"id": 7, "type": "end"},
            ]
            assert page.subscribed == 0

    with_page(test, ending=Ending)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JobNotFoundError("There is no such job.", "Look again."), "not_found"),
        (ClusterError("It does not answer."), "unreachable"),
        (TimeoutError(), "timeout"),
        (RuntimeError("a secret of ours"), "internal"),
    ],
)
def test_what_goes_wrong_is_said(error: Exception, code: str) -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        await subscribe(page, 1, "failing")
        await turns()
        (said,) = wire.sent
        assert (said["id"], said["type"], said["code"]) == (1, "error", code)
        assert "secret" not in json.dumps(said)
        assert page.subscribed == 0

    with_page(test, failing=failing(error))


def test_no_more_subscriptions_than_the_limit() -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        wire.open.clear()
        for number in range(MAX_SUBSCRIPTIONS):
            await subscribe(page, number, "ticking")
        wire.open.set()
        await subscribe(page, MAX_SUBSCRIPTIONS, "ticking")
        assert any(m["type"] == "error" and m["id"] == MAX_SUBSCRIPTIONS for m in wire.sent)
        assert page.subscribed == MAX_SUBSCRIPTIONS

    with_page(test, ticking=Ticking)


def test_a_page_that_is_gone_ends_its_feeds() -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        await subscribe(page, 1, "ticking")
        wire.gone = True
        await turns()
        assert page.subscribed == 0

    with_page(test, ticking=Ticking)


def test_unsubscribing_stops_the_feed() -> None:
    async def test(page: PageSubscriptions, wire: Wire) -> None:
        await subscribe(page, 1, "ticking")
        await turns()
        await page.receive('{"op": "unsubscribe", "id": 1}')
        await turns(2)
        count = len(wire.sent)
        await turns(50)
        assert len(wire.sent) == count

    with_page(test, ticking=Ticking)


def test_credit_is_spent_and_given_back() -> None:
    async def test() -> None:
        credit = Credit()
        credit.spend(WINDOW)
        assert credit.left == 0
        waiting = asyncio.create_task(credit.wait(1000))
        await turns()
        assert not waiting.done()
        credit.give(999)
        await turns()
        assert not waiting.done()
        credit.give(1)
        assert await waiting == 1000
        credit.give(1 << 50)  # more than was sent
        assert credit.left == WINDOW
        assert await credit.wait(WINDOW * 2) == WINDOW  # no more than there can be

    asyncio.run(test())
