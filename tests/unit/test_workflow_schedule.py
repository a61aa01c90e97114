"""Schedules: Quartz's expressions and crontab's, time zones and the hours that clocks jump over."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from submarine_workflows.schedule import ScheduleError, read_schedule, read_timezone

BERLIN = ZoneInfo("Europe/Berlin")


def runs(
    text: str, count: int = 3, since: str = "2027-03-27", zone: ZoneInfo = BERLIN
) -> list[str]:
    moment = datetime.fromisoformat(since).replace(tzinfo=zone)
    return [one.isoformat() for one in islice(read_schedule(text).after(moment), count)]


def test_a_run_in_the_hour_that_is_left_out_comes_right_after_it():
    expected = [
        "2027-03-27T02:30:00+01:00",
        "2027-03-28T03:00:00+02:00",
        "2027-03-29T02:30:00+02:00",
    ]
    assert runs("0 30 2 ? * *") == runs("30 2 * * *") == expected


def test_a_run_in_the_hour_that_comes_twice_comes_once():
    assert runs("0 30 2 ? * *", since="2027-10-30T12:00") == [
        "2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00", "2027-11-02T02:30:00+01:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "quartz", "crontab", "first"),
    [
        ("0 0/15 9-17 ? * MON-FRI", None, "0-59/15 9-17 * * 1,2,3,4,5", "2027-03-29T09:00"),
        ("0 0 12 ? * FRI-MON", None, "0 12 * * 5,6,0,1", "2027-03-27T12:00"),
        ("0 0 12 ? * 2", None, "0 12 * * 1", "2027-03-29T12:00"),
        ("0 0 12 ? * L", None, "0 12 * * 6", "2027-03-27T12:00"),
        ("0 0 0 L * ?", None, "", "2027-03-31T00:00"),
        ("15 10 10 ? * 6#3 2026-2028", None, "", "2027-04-16T10:10:15"),
        ("0 0 12 ? * 6L", None, "", "2027-04-30T12:00"),
        ("0/20 0 12 1 1 ?", None, "", "2028-01-01T12:00"),
        ("0 0 0 1 1 ? 2030/5", None, "", "2030-01-01T00:00"),
        ("30 2 * * *", "0 30 2 * * ?", "30 2 * * *", "2027-03-27T02:30"),
        ("0 5 * * 0,6", "0 0 5 ? * 1,7", "0 5 * * 0,6", "2027-03-27T05:00"),
        ("0 5 * * mon-wed", "0 0 5 ? * 2,3,4", "0 5 * * MON-WED", "2027-03-29T05:00"),
        ("@weekly", "0 0 0 ? * 1", "0 0 * * 0", "2027-03-28T00:00"),
    ],
)
def test_both_languages_of_cron(text, quartz, crontab, first):
    schedule = read_schedule(text)
    assert schedule.quartz == (quartz or text)
    assert schedule.crontab == crontab
    assert runs(text, 1)[0].startswith(first)
    if crontab:
        assert runs(crontab, 5) == runs(text, 5)
    if quartz:
        assert runs(quartz, 5) == runs(text, 5)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has 0 fields"),
        ("* * *", "has 3 fields"),
        ("61 * * * *", "bad minute"),
        ("0 30 2 * * *", "exactly one of"),
        ("0 30 2 ? * ?", "exactly one of"),
        ("0 0 0 31 2 ?", "bad day-of-month"),
        ("0 0 0 15W * ?", "Quartz's alone"),
        ("0 0 0 ? * FOO", "no day of the week"),
        ("0 0 0 ? * 0", "no day of the week"),
        ("0 0 0 ? * MON-TUE/0", "goes nowhere"),
        ("0 0 0 1 1 ? 1999", "never comes true"),
        ("0 0 0 1 1 ? 20x", "no year"),
        ("0 5 1 * MON", "between schedulers"),
    ],
)
def test_what_is_no_schedule_is_said(text, sentence):
    with pytest.raises(ScheduleError, match=sentence):
        read_schedule(text)


def test_runs_that_were_missed_are_counted_up_to_a_limit():
    schedule = read_schedule("0 0 * ? * *")
    since = datetime(2027, 1, 1, tzinfo=BERLIN)
    assert len(schedule.between(since, since + timedelta(hours=5))) == 5
    assert len(schedule.between(since, since + timedelta(days=400), limit=10)) == 10
    with pytest.raises(ValueError, match="time zone"):
        next(schedule.after(datetime(2027, 1, 1)))


def test_time_zones_are_looked_up_by_name_only():
    assert read_timezone("Asia/Shanghai").key == "Asia/Shanghai"
    for name in ("", "Mars/Base", "../../etc/passwd", "/etc/localtime"):
        with pytest.raises(ScheduleError):
            read_timezone(name)
