"""Convert a schedule to the time zone of Azkaban's web server, the only one that it uses.

An expression is converted only if it denotes the same times on every day of the year; others are
rejected.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.model import Schedule, read_schedule, read_timezone

_DAYS = 366 * 3
_HOW_TO_CONFIGURE = _(
    'Set that of the server under [azkaban] in submarine.toml: timezone = "Asia/Shanghai".'
)


def to_server_zone(schedule: str, wanted: str, servers: str) -> str:
    """Return the Quartz expression for Azkaban.

    Parameters
    ----------
    schedule
        Valid Quartz or crontab expression.
    wanted
        Time zone of the workflow; empty: that of the server.
    servers
        Time zone of the server; empty if it is unknown.

    Raises
    ------
    UsageError
        If no expression in the server's time zone is equivalent.
    """
    read = read_schedule(schedule)
    if not wanted or wanted == servers:
        return read.quartz
    if not servers:
        raise UsageError(
            _(
                "The workflow's schedule is in {wanted}, and Azkaban uses that of its server, "
                "which is not configured."
            ).format(wanted=wanted),
            _HOW_TO_CONFIGURE,
        )
    shift = _difference(read_timezone(wanted), read_timezone(servers))
    if shift is not None and not shift:
        return read.quartz
    moved = _shifted(read, shift) if shift is not None else None
    if moved is None:
        why = (
            _("the two time zones change their clocks on different days")
            if shift is None
            else _("it would be on different days there")
        )
        raise UsageError(
            _(
                "The schedule `{schedule}` in {wanted} cannot be expressed in {servers}, the "
                "zone of Azkaban's server: {why}."
            ).format(schedule=schedule, wanted=wanted, servers=servers, why=why),
            _("Write it in the time zone of the server, and omit `timezone:`."),
        )
    return moved


def _difference(here: ZoneInfo, there: ZoneInfo) -> timedelta | None:
    """Return the difference of the two time zones, or None if it varies."""
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    found = set()
    for day in range(_DAYS):
        moment = start + timedelta(days=day)
        here_offset, there_offset = (
            moment.astimezone(here).utcoffset(),
            moment.astimezone(there).utcoffset(),
        )
        found.add((there_offset or timedelta()) - (here_offset or timedelta()))
    return found.pop() if len(found) == 1 else None


def _shifted(read: Schedule, shift: timedelta) -> str | None:
    """Shift a single time of day; past midnight only if the schedule is daily."""
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
