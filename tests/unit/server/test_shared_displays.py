"""Displays that pages share: one for all pages at the same time, ended with the last."""

from __future__ import annotations

import asyncio

from submarine_server.displays.shared import SharedPool


class Thing:
    def __init__(self) -> None:
        self.key = ""
        self.ended = False
        self.failed = False


def shared(made: list[Thing]) -> SharedPool[str, Thing]:
    async def work(key: str, thing: Thing) -> None:
        thing.key = key
        made.append(thing)
        try:
            await asyncio.Event().wait()
        finally:
            thing.ended = True

    return SharedPool(Thing, work, lambda thing: thing.failed)


def test_all_pages_share_one_that_ends_with_the_last() -> None:
    async def story() -> None:
        made: list[Thing] = []
        all_things = shared(made)
        async with all_things.open("a") as first:
            async with all_things.open("a") as second, all_things.open("b") as other:
                await asyncio.sleep(0)
                assert second is first is not other
                assert [thing.key for thing in made] == ["a", "b"]
            await asyncio.sleep(0)
            assert (first.ended, other.ended) == (False, True)
        await asyncio.sleep(0)
        assert first.ended
        async with all_things.open("a") as again:
            assert again is not first

    asyncio.run(story())


def test_a_page_after_a_failure_gets_a_new_one_and_the_first_ends_with_its_pages() -> None:
    async def story() -> None:
        made: list[Thing] = []
        all_things = shared(made)
        async with all_things.open("a") as first:
            await asyncio.sleep(0)
            first.failed = True
            async with all_things.open("a") as second:
                await asyncio.sleep(0)
                assert second is not first
                async with all_things.open("a") as third:
                    assert third is second
            await asyncio.sleep(0)
            assert (first.ended, second.ended) == (False, True)
        await asyncio.sleep(0)
        assert first.ended

    asyncio.run(story())
