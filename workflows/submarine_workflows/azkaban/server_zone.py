"""A schedule in the time zone of Azkaban's web server, which is the only one that it knows.

An expression is moved only where it means the same moments on every day of the year; all else is
refused with a sentence.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from submarine_jobs.errors import UsageError
from submarine_workflows.model import Schedule, read_schedule, read_timezone

_DAYS = 366 * 3
_NAMED = 'Name the server\'s under [azkaban] in submarine.toml: timezone = "Asia/Shanghai".'


def for_server(schedule: str, wanted: str, servers: str) -> str:
    """The Quartz expression that Azkaban gets.

    Parameters
    ----------
    schedule
        Quartz's or crontab's expression, checked.
    wanted
        The workflow's time zone; empty: the server's, whatever it is.
    servers
        The server's time zone; empty: not known.

    Raises
    ------
    UsageError
        If it cannot say the same there.
    """
    read = read_schedule(schedule)
    if not wanted or wanted == servers:
        return read.quartz
    if not servers:
        raise UsageError(
            f"The workflow's schedule is in {wanted}, and Azkaban runs it in its own time zone, "
            "which is not known here.",
            _NAMED,
        )
    shift = _difference(read_timezone(wanted), read_timezone(servers))
    if shift is not None and not shift:
        return read.quartz
    moved = _moved(read, shift) if shift is not None else None
    if moved is None:
        why = (
            "the clocks of the two are not changed on the same days"
            if shift is None
            else "moved to that one it would fall on other days"
        )
        raise UsageError(
            f"The schedule `{schedule}` in {wanted} cannot be said in {servers}, the time zone of "
            f"Azkaban's server: {why}.",
            "Write it in the server's, and leave `timezone:` out.",
        )
    return moved


def _difference(here: ZoneInfo, there: ZoneInfo) -> timedelta | None:
    """What the server's clock is ahead; None: not always the same."""
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    found = set()
    for day in range(_DAYS):
        moment = start + timedelta(days=day)
        ours, theirs = moment.astimezone(here).utcoffset(), moment.astimezone(there).utcoffset()
        found.add((theirs or timedelta()) - (ours or timedelta()))
    return found.pop() if len(found) == 1 else None


def _moved(read: Schedule, shift: timedelta) -> str | None:
    """One time of day is moved, over midnight where every day is meant."""
    fields = read.quartz.split()
    second, minute, hour, day, month, weekday = fields[:6]
    if not (minute.isdigit() and hour.isdigit()):
        return None
    total = int(hour) * 60 + int(minute) + int(shift.total_seconds()) // 60
    days, rest = divmod(total, 24 * 60)
    every_day = {day, weekday} == {"*", "?"} and month == "*" and len(fields) == 6
    if days and not every_day:
        return None
    return " ".join([second, str(rest % 60), str(rest // 60), *fields[3:]])
