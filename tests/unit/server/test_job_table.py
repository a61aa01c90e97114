"""The board of a server's jobs tells what is new, and a poll is everybody's."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from submarine_jobs.backends import Observation, Stage
from submarine_jobs.errors import ClusterError
from submarine_jobs.tracking import Target
from submarine_server.monitor.index import NEWEST
from submarine_server.monitor.job_table import Board
from submarine_server.monitor.observer import SharedObserver
from tests.unit.server.job_rows import job, known, row


def test_the_board_tells_only_what_is_new() -> None:
    async def test() -> None:
        board = Board()
        assert board.put([row(1), row(2)], total=7) == [row(1), row(2)]
        part = board.whole()
        assert [each["job_id"] for each in part.rows] == [job(2), job(1)]
        assert part.total == 7
        assert board.put([row(1), row(2)]) == []
        assert board.since(part.number).rows == []
        assert board.put([row(1, detail="more")]) == []  # changed, and not moved
        assert board.put([row(2, "SUCCEEDED")]) == [row(2, "SUCCEEDED")]
        await asyncio.wait_for(board.wait(part.number), 1)
        assert {each["job_id"] for each in board.since(part.number).rows} == {job(1), job(2)}
        part = board.since(0)
        waiting = asyncio.create_task(board.wait(part.number))
        await asyncio.sleep(0)
        assert not waiting.done()
        board.say("The cluster does not answer.")
        await asyncio.wait_for(waiting, 1)

    asyncio.run(test())


def test_a_board_that_begins_anew_tells_all_to_whom_knew_what_was_before() -> None:
    board = Board()
    board.begin_anew()
    assert board.whole().number == 0, "nobody has seen anything"
    board.put([row(1)])
    before = board.whole()
    board.begin_anew()
    board.put([row(2)])
    told = board.since(before.number)
    assert (told.whole, [each["job_id"] for each in told.rows]) == (True, [job(2)])
    board.put([row(3)])
    told = board.since(told.number)
    assert (told.whole, [each["job_id"] for each in told.rows]) == (False, [job(3)])


def test_the_board_stays_bounded_and_keeps_what_goes_on() -> None:
    board = Board()
    board.put([row(0)])
    for number in range(1, 3000):
        board.put([row(number, "SUCCEEDED")])
    rows = board.whole().rows
    assert len(rows) == NEWEST + 1
    assert rows[-1]["job_id"] == job(0)
    assert len(board.since(0).rows) <= 2 * NEWEST + 1


def target(number: int) -> Target:
    return Target(known(number), None, None)  # type: ignore[arg-type]


def test_whoever_asks_gets_the_next_poll_that_begins() -> None:
    observer = SharedObserver()
    observer.begin()  # a poll that began before the question must not answer it
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(observer([target(1)])))
    thread.start()
    asked: dict[str, Target] = {}
    observer.finish({job(1): Observation(Stage.WAITING)})
    deadline = time.monotonic() + 10
    while not asked and time.monotonic() < deadline:
        asked = observer.begin()
        assert not found
        if not asked:
            observer.finish({})
            time.sleep(0.01)
    assert set(asked) == {job(1)}
    observer.finish({job(1): Observation(Stage.RUNNING), job(2): Observation(Stage.RUNNING)})
    thread.join(10)
    assert found[0] == {job(1): Observation(Stage.RUNNING)}


def test_a_poll_that_fails_is_told_and_an_end_lets_go() -> None:
    observer = SharedObserver()
    assert observer([]) == {}
    said: list[str] = []

    def ask() -> None:
        with pytest.raises(ClusterError) as error:
            observer([target(1)])
        said.append(error.value.message)

    thread = threading.Thread(target=ask)
    thread.start()
    deadline = time.monotonic() + 10
    while not observer.begin() and time.monotonic() < deadline:
        observer.finish({})
        time.sleep(0.01)
    observer.finish({}, {job(1): ClusterError("It is away.")})
    thread.join(10)
    assert said == ["It is away."]
    thread = threading.Thread(target=ask)
    thread.start()
    observer.close()
    thread.join(10)
    assert len(said) == 2
