"""The thread that keeps the job's page on YARN up to date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from submarine_runtime.yarn import PageThread
from submarine_runtime.yarn.page_updates import PageError

RECORD = {
    "job_id": "digits-20261123-1a2b",
    "name": "digits",
    "state": "RUNNING",
    "detail": "",
    "pending": "Waits for HDFS.",
    "progress": 0.12345,
    "links": {"board": "http://node:6006"},
    "tasks": [
        {"task": "ps:0", "host": "one", "log_url": None},
        {"task": "worker:0", "host": "two", "log_url": "http://two:8042/log"},
    ],
}


class FakePage:
    def __init__(self) -> None:
        self.shown: list[Mapping[str, Any]] = []
        self.closed = False

    def update(self, job: Mapping[str, Any]) -> None:
        self.shown.append(job)

    def close(self) -> None:
        self.closed = True


def test_the_page_shows_the_chief_to_the_end() -> None:
    page, sentences = FakePage(), list[str]()
    thread = PageThread(lambda: page, lambda: RECORD, "worker:0", sentences.append)
    thread.start()
    thread.finish()
    assert sentences == ["The job is on its YARN page."]
    assert page.closed
    last = page.shown[-1]
    assert (last["task"], last["host"], last["log_url"]) == (
        "worker:0",
        "two",
        "http://two:8042/log",
    )
    assert (last["detail"], last["progress"]) == ("Waits for HDFS.", 0.12)
    assert last["links"] == {"board": "http://node:6006"}


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PageError("the helper ended"), "the helper ended"),
        (
            ModuleNotFoundError("No module named 'skein'"),
            "ModuleNotFoundError: No module named 'skein'",
        ),
    ],
)
def test_a_job_without_a_page_reports_why(error: Exception, why: str) -> None:
    def open_page() -> FakePage:
        raise error

    sentences: list[str] = []
    thread = PageThread(open_page, lambda: RECORD, "worker:0", sentences.append)
    thread.start()
    thread.finish()
    assert sentences == [f"There is no page on YARN: {why}"]


def test_a_master_that_ends_closes_the_page() -> None:
    class Ending(FakePage):
        def update(self, job: Mapping[str, Any]) -> None:
            raise ConnectionResetError

    page = Ending()
    thread = PageThread(lambda: page, lambda: RECORD, "worker:0", lambda sentence: None)
    thread.start()
    thread.finish()
    assert page.closed
