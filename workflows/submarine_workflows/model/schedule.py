"""Parse schedules: Quartz cron expressions as in Azkaban, and the five fields of crontab.

``cronsim`` computes the times by the rules of Debian's cron: a run in the hour that the clock skips
starts right after the change, and a run in the repeated hour starts once.

Notes
-----
Quartz has six or seven fields, with seconds first and the year last. Days of the week are 1
(Sunday) to 7, and exactly one of day of month and day of week is ``?`` (Quartz, "CronTrigger
Tutorial").
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from submarine_runtime.translation import _
from submarine_workflows.model.workflow import Workflow

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIRST_YEAR, _LAST_YEAR = 1970, 2099
_RANGE = re.compile(r"(\w+)-(\w+)(/\d+)?")
_EXAMPLE = _('as in "0 30 2 ? * *": at 2:30 every day')
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_NEXT = 3


class ScheduleError(ValueError):
    """A schedule or time zone is invalid; the message is a sentence."""


@dataclass(frozen=True)
class Schedule:
    """A parsed schedule.

    Attributes
    ----------
    text
        The original text.
    quartz
        The Quartz expression, six or seven fields.
    crontab
        The five fields of crontab; empty if they cannot express seconds or years.
    """

    text: str
    quartz: str
    crontab: str
    _fields: str
    _offset: int
    _years: frozenset[int] | None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the runs after ``moment``; infinite unless the expression ends.

        Parameters
        ----------
        moment
            In the time zone of the schedule.

        Raises
        ------
        ValueError
            If ``moment`` has no time zone.
        """
        if moment.tzinfo is None:
            raise ValueError(_("a schedule's times need a time zone"))
        later = timedelta(seconds=self._offset)
        for face in CronSim(self._fields, _add_via_utc(moment, -later)):
            if self._years is not None and face.year > max(self._years):
                return
            found = _add_via_utc(face, later)
            # In the second of two equal hours, the runs of the first are in the past.
            over = found.timestamp() <= moment.timestamp()
            if not over and (self._years is None or face.year in self._years):
                yield found


def read_schedule(text: str) -> Schedule:
    """Parse a Quartz expression (6 or 7 fields) or a crontab schedule (5 fields, ``@daily`` etc.).

    Raises
    ------
    ScheduleError
        If the text is not a schedule or has no future run.
    """
    words = _SHORTHANDS.get(text.strip().lower(), text).upper().split()
    if len(words) == 5:
        schedule = _of_crontab(text, words)
    elif len(words) in (6, 7):
        schedule = _of_quartz(text, words)
    else:
        raise ScheduleError(
            _(
                "`{text}` has {count} fields; a schedule has six or seven (second, minute, "
                "hour, day, month, day of week, year), {example}, or crontab's five."
            ).format(text=text, count=len(words), example=_EXAMPLE)
        )
    try:
        next(schedule.after(datetime.now(ZoneInfo("UTC"))))
    except CronSimError as exc:
        raise ScheduleError(
            _("`{text}`: {lower}; write it {example}.").format(
                text=text, lower=_lower_first(str(exc)), example=_EXAMPLE
            )
        ) from None
    except StopIteration:
        raise ScheduleError(_("`{text}` has no future run.").format(text=text)) from None
    return schedule


def read_timezone(name: str) -> ZoneInfo:
    """Return the time zone of an IANA name.

    Raises
    ------
    ScheduleError
        If this machine has no such time zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(
            _("`{name}` is not a time zone; use a name such as Europe/Berlin or UTC.").format(
                name=name
            )
        ) from None


def _add_via_utc(moment: datetime, by: timedelta) -> datetime:
    """Add via UTC: arithmetic on local time loses which of two equal hours is meant."""
    return (moment.astimezone(UTC) + by).astimezone(moment.tzinfo) if by else moment


def _of_crontab(text: str, words: list[str]) -> Schedule:
    minute, hour, day, month, weekday = words
    if day != "*" and weekday != "*":
        # In crontab either day matches, which Quartz cannot express and is rarely intended.
        raise ScheduleError(
            _(
                "`{text}` has a day of the month and a day of the week, which schedulers "
                "combine differently. Give one of them, and * for the other."
            ).format(text=text)
        )
    days = "?" if weekday != "*" else day
    weekdays = "?" if weekday == "*" else _weekdays(text, weekday, to_quartz=True)
    quartz = f"0 {minute} {hour} {days} {month} {weekdays}"
    return Schedule(text, quartz, " ".join(words), " ".join(words), 0, None)


def _of_quartz(text: str, words: list[str]) -> Schedule:
    second, minute, hour, day, month, weekday = words[:6]
    if (day == "?") == (weekday == "?"):
        raise ScheduleError(
            _("`{text}`: exactly one of day of month and day of week is `?`, {example}.").format(
                text=text, example=_EXAMPLE
            )
        )
    if "W" in day:
        raise ScheduleError(
            _("`{text}`: `{day}` (the nearest working day) is not supported.").format(
                text=text, day=day
            )
        )
    fields = [minute, hour, day.replace("?", "*"), month, _weekdays(text, weekday)]
    years = _years(text, words[6]) if len(words) == 7 else None
    if second.isdigit() and int(second) < 60:
        crontab = _crontab(fields) if int(second) == 0 and years is None else ""
        return Schedule(text, " ".join(words), crontab, " ".join(fields), int(second), years)
    return Schedule(text, " ".join(words), "", " ".join([second, *fields]), 0, years)


def _crontab(fields: list[str]) -> str:
    """Return the fields for crontab, which has no ``5/15``; empty for ``L`` and ``#``."""
    if any(mark in fields[2] + fields[4] for mark in "L#"):
        return ""
    ends = (59, 23, 31, 12, 7)
    found = []
    for field, end in zip(fields, ends, strict=True):
        parts = [re.sub(r"^(\w+)/", rf"\1-{end}/", part) for part in field.split(",")]
        found.append(",".join(parts))
    return " ".join(found)


def _weekdays(text: str, field: str, *, to_quartz: bool = False) -> str:
    """Convert days of the week from Quartz numbers to cron numbers, or back."""
    if field in ("?", "*"):
        return "*"
    if field == "L":
        return "6"  # Quartz: the last day of the week
    parts = []
    for part in field.split(","):
        days = _days_of_range(text, part, to_quartz=to_quartz)
        parts.append(days if days is not None else _one_day(text, part, to_quartz=to_quartz))
    return ",".join(parts)


def _days_of_range(text: str, part: str, *, to_quartz: bool) -> str | None:
    """Return the list of days of ``FRI-MON``; a Quartz range may cross the end of the week."""
    match = _RANGE.fullmatch(part)
    if match is None:
        return None
    first, last = (int(_one_day(text, match.group(n), to_quartz=to_quartz)) for n in (1, 2))
    base = 1 if to_quartz else 0
    length = (last - first) % 7 + 1
    step = int(match.group(3)[1:]) if match.group(3) else 1
    if not step:
        raise ScheduleError(_("`{text}`: `{part}` has a step of 0.").format(text=text, part=part))
    return ",".join(str((first - base + n) % 7 + base) for n in range(0, length, step))


def _one_day(text: str, part: str, *, to_quartz: bool = False) -> str:
    """Convert the day number in ``6#3``, ``6L``, ``FRI`` or ``2/2``."""
    day, rest = part, ""
    for mark in ("#", "/", "L"):
        if mark in part:
            day, rest = part.split(mark, 1)[0], mark + part.split(mark, 1)[1]
            break
    if day == "*":
        return part
    if day in _DAYS:
        number = _DAYS.index(day)
    elif day.isdigit() and len(day) == 1 and (to_quartz or 1 <= int(day) <= 7):
        number = int(day) % 7 if to_quartz else int(day) - 1
    else:
        raise ScheduleError(
            _(
                "`{text}`: `{part}` is not a day of the week; use SUN to SAT, or 1 (Sunday) to 7."
            ).format(text=text, part=part)
        )
    return f"{number + 1 if to_quartz else number}{rest}"


def _years(text: str, field: str) -> frozenset[int] | None:
    if field == "*":
        return None
    found: set[int] = set()
    for part in field.split(","):
        match = re.fullmatch(r"(\d{4}|\*)(?:-(\d{4}))?(?:/(\d{1,3}))?", part)
        if match is None or match.group(3) == "0":
            raise ScheduleError(
                _("`{text}`: `{part}` is not a year; use 2027 or 2027-2030.").format(
                    text=text, part=part
                )
            )
        first = _FIRST_YEAR if match.group(1) == "*" else int(match.group(1))
        last = int(match.group(2)) if match.group(2) else first
        if match.group(3) and not match.group(2):
            last = _LAST_YEAR
        found.update(range(first, min(last, _LAST_YEAR) + 1, int(match.group(3) or 1)))
    return frozenset(year for year in found if year >= _FIRST_YEAR)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def next_runs(workflow: Workflow) -> list[datetime]:
    """Return the next times of the schedule; empty if there is none."""
    if not workflow.schedule:
        return []
    return list(
        islice(read_schedule(workflow.schedule).after(datetime.now(zone_of(workflow))), _NEXT)
    )


def zone_of(workflow: Workflow) -> tzinfo:
    """Return the workflow's time zone, else the machine's."""
    if workflow.timezone:
        return read_timezone(workflow.timezone)
    return machine_zone()


def machine_zone() -> tzinfo:
    """Return the machine's time zone, with its daylight saving rules if they can be found."""
    for name in (os.environ.get("TZ", ""), _name_of_local_zone()):
        try:
            if name:
                return read_timezone(name.removeprefix(":"))
        except ValueError:
            continue
    found = datetime.now().astimezone().tzinfo
    if found is None:
        raise RuntimeError(_("the machine has no time zone"))
    return found


def _name_of_local_zone() -> str:
    try:
        target = Path("/etc/localtime").resolve()
    except OSError:
        return ""
    return str(target).partition("zoneinfo/")[2]
