"""Find missed runs: times of a schedule without a run.

A time is covered by any run that starts between it and the next time, so a later manual run counts.
Comparisons use timestamps, because local time repeats in autumn.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise

from submarine_jobs.errors import UsageError
from submarine_workflows.model import read_schedule
from submarine_workflows.runs.folders import RunFolder
from submarine_workflows.runs.views import view_of

#: Seconds that a run may start early (clock differences) and late (machine load).
EARLY = 5.0
LATE = 60.0
#: Limit of examined times: five years of daily runs, 33 hours of runs every minute.
_MOST = 2000


@dataclass(frozen=True)
class MissedRuns:
    """Runs that a schedule required and that did not take place.

    Attributes
    ----------
    times
        Oldest first.
    more
        Whether there may be more: the schedule has too many times to examine all.
    """

    times: tuple[datetime, ...] = ()
    more: bool = False


def find_missed_runs(
    schedule: str, zone: tzinfo, starts: Sequence[float], now: float
) -> MissedRuns:
    """Return the times since the first of ``starts`` that have no run.

    Parameters
    ----------
    starts
        Start times of runs in seconds since 1970; if empty, no run counts as missed.
    """
    if not schedule or not starts:
        return MissedRuns()
    began = sorted(starts)
    due, more = _due(schedule, datetime.fromtimestamp(began[0], zone), now)
    if more:
        due, _ = _due(schedule, datetime.fromtimestamp(began[-1], zone), now)
    found = [
        moment
        for moment, following in pairwise(due)
        if moment.timestamp() <= now - LATE
        and not _any_within(began, moment.timestamp() - EARLY, following.timestamp() - EARLY)
    ]
    return MissedRuns(tuple(found), more)


def _due(schedule: str, since: datetime, now: float) -> tuple[list[datetime], bool]:
    """Return the times up to the first future one, and whether there are too many."""
    due: list[datetime] = []
    for moment in read_schedule(schedule).after(since):
        due.append(moment)
        if moment.timestamp() > now:
            return due, False
        if len(due) > _MOST:
            return due, True
    return due, False


def _any_within(times: Sequence[float], since: float, until: float) -> bool:
    index = bisect.bisect_left(times, since)
    return index < len(times) and times[index] < until


def scheduled_starts(runs: Sequence[RunFolder]) -> list[float]:
    """Return the start times since the first scheduled run; empty if no run was scheduled."""
    views = []
    for run in runs:
        with suppress(UsageError):
            views.append(view_of(run))
    first = [view.started for view in views if view.options.get("scheduled")]
    return [view.started for view in views if first and view.started >= min(first)]
