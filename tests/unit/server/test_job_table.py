"""The table of a server's jobs tells what is new, and a poll is everybody's."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from submarine_jobs.backends import Observation, Stage
from submarine_jobs.errors import ClusterError
from submarine_jobs.tracking import Target
from submarine_server.monitor.index import MAX_LISTED
from submarine_server.monitor.job_table import JobTable
from submarine_server.monitor.observer import PollObserver
from tests.unit.server.job_rows import job, known, row


def test_the_board_tells_only_what_is_new() -> None:
    async def test() -> None:
        table = JobTable()
        assert table.update([row(1), row(2)], total=7) == [row(1), row(2)]
        part = table.snapshot()
        assert [each["job_id"] for each in part.rows] == [job(2), job(1)]
        assert part.total == 7
        assert table.update([row(1), row(2)]) == []
        assert table.changes_since(part.revision).rows == []
        assert table.update([row(1, detail="more")]) == []  # changed, and not moved
        assert table.update([row(2, "SUCCEEDED")]) == [row(2, "SUCCEEDED")]
        await asyncio.wait_for(table.wait(part.revision), 1)
        assert {each["job_id"] for each in table.changes_since(part.revision).rows} == {
            job(1),
            job(2),
        }
        part = table.changes_since(0)
        waiting = asyncio.create_task(table.wait(part.revision))
        await asyncio.sleep(0)
        assert not waiting.done()
        table.set_problem("The cluster does not answer.")
        await asyncio.wait_for(waiting, 1)

    asyncio.run(test())


def test_a_board_that_begins_anew_tells_all_to_whom_knew_what_was_before() -> None:
    table = JobTable()
    table.reset()
    assert table.snapshot().revision == 0, "nobody has seen anything"
    table.update([row(1)])
    before = table.snapshot()
    table.reset()
    table.update([row(2)])
    told = table.changes_since(before.revision)
    assert (told.whole, [each["job_id"] for each in told.rows]) == (True, [job(2)])
    table.update([row(3)])
    told = table.changes_since(told.revision)
    assert (told.whole, [each["job_id"] for each in told.rows]) == (False, [job(3)])


@pytest.mark.slow
def test_the_board_stays_bounded_and_keeps_what_goes_on() -> None:
    table = JobTable()
    table.update([row(0)])
    for number in range(1, 3000):
        table.update([row(number, "SUCCEEDED")])
    rows = table.snapshot().rows
    assert len(rows) == MAX_LISTED + 1
    assert rows[-1]["job_id"] == job(0)
    assert len(table.changes_since(0).rows) <= 2 * MAX_LISTED + 1


def target(number: int) -> Target:
    return Target(known(number), None, None)  # type: ignore[arg-type]


def test_a_request_gets_the_next_poll_that_begins() -> None:
    observer = PollObserver()
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


def test_a_failed_poll_is_raised_and_an_end_releases_waiters() -> None:
    observer = PollObserver()
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
