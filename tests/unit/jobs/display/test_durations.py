"""One duration of a job for all front ends: from its submission to its end."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from submarine_jobs import display
from submarine_jobs.display import summary
from submarine_jobs.frontends.wait_display import StateDisplay
from submarine_jobs.model import JobView
from submarine_runtime.protocol import JobRecord, Phase, State, TaskRecord

BEGAN = 1_763_000_000.0


def view(state: State, created: float | None, finished: float | None = None) -> JobView:
    """Of a job that waited for 8 s before its program started."""
    record = JobRecord("took-20261120-7f3a", "took", state, created=created, finished=finished)
    if created is not None:
        record.phases = [Phase("queue", created + 1, created + 8), Phase("run", created + 8)]
        record.tasks = [TaskRecord("worker:0", "worker", 0, started=created + 8)]
    return JobView(record)


def told(shown: JobView) -> list[str]:
    """What ``--wait`` says of a job."""
    said: list[str] = []
    subscribe = SimpleNamespace(subscribe=lambda job, look: look(shown) or (lambda: None))
    job = SimpleNamespace(id=shown.record.job_id, session=SimpleNamespace(watcher=subscribe))
    with StateDisplay(cast(Any, job), said.append) as line:
        said.append(line.line())
    return said


@pytest.mark.parametrize(
    ("state", "finished", "words"),
    [(State.SUCCEEDED, BEGAN + 12.4, "12 s"), (State.FAILED, BEGAN + 9.94, "9.9 s")],
)
def test_every_front_end_shows_the_same_duration(state: State, finished: float, words: str) -> None:
    shown = view(state, BEGAN, finished)
    assert summary.format_elapsed(shown) == words
    assert f"{state.value} after {words}" in display.headline(shown)
    assert f">{words}</span>" in display.html(shown)
    assert display.table([shown.record]).text.endswith(f" {words}")
    assert f"[{words:>6}] took-20261120-7f3a {state.value}" in told(shown)


def test_a_running_job_ticks_in_whole_seconds_everywhere() -> None:
    now = BEGAN + 12.9
    shown = view(State.RUNNING, BEGAN)
    assert "RUNNING after 12 s" in display.headline(shown, now)
    assert ">12 s</span>" in display.html(shown, now=now)
    assert display.table([shown.record], now=now).text.endswith(" 12 s")


def test_the_line_of_a_wait_counts_from_the_submission() -> None:
    (first, last) = told(view(State.RUNNING, time.time() - 7200))
    assert first == "[2 h 00 min] took-20261120-7f3a RUNNING"
    assert last == first
    # Where that is not known, from the beginning of the wait.
    assert told(view(State.RUNNING, None))[1] == "[   0 s] took-20261120-7f3a RUNNING"


def test_a_job_whose_end_is_not_known_does_not_go_on() -> None:
    shown = view(State.LOST, BEGAN)
    assert summary.elapsed(shown) is None
    assert display.headline(shown).endswith("LOST")
