"""Runs that should have been and were not: the times of a schedule that no run answers for.

A time is answered for by any run that starts between it and the next one, so a run that was made up
for by hand is not missed. Compares moments, not clock faces, since clocks are put back in autumn.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise

from submarine_workflows.model import read_schedule

#: Seconds that a run may start early (clocks differ) and late (a machine is busy).
EARLY = 5.0
LATE = 60.0
#: Most times of a schedule that are looked at: five years of nights, a day and a half of minutes.
_MOST = 2000


@dataclass(frozen=True)
class Missed:
    """What was missed.

    Attributes
    ----------
    times
        Oldest first.
    more
        Whether there may be others: the schedule has come true too often to look at all of it.
    """

    times: tuple[datetime, ...] = ()
    more: bool = False


def missed(schedule: str, zone: tzinfo, starts: Sequence[float], now: float) -> Missed:
    """The times since the first of ``starts`` that no run answers for.

    Parameters
    ----------
    starts
        When runs started, in seconds since 1970; with none, nothing is known to be missed.
    """
    if not schedule or not starts:
        return Missed()
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
    return Missed(tuple(found), more)


def _due(schedule: str, since: datetime, now: float) -> tuple[list[datetime], bool]:
    """The times up to the first that is to come; whether there are too many to look at."""
    due: list[datetime] = []
    for moment in read_schedule(schedule).after(since):
        due.append(moment)
        if moment.timestamp() > now:
            return due, False
        if len(due) > _MOST:
            return due, True
    return due, False


def _any_within(times: Sequence[float], since: float, until: float) -> bool:
    place = bisect.bisect_left(times, since)
    return place < len(times) and times[place] < until
