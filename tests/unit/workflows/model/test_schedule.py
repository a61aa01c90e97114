"""Schedules: Quartz's expressions and crontab's, time zones and the hours that clocks jump over."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from submarine_workflows.model import ScheduleError, read_schedule, read_timezone

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
        ("0 0 0 15W * ?", "is not supported"),
        ("0 0 0 ? * FOO", "not a day of the week"),
        ("0 0 0 ? * 0", "not a day of the week"),
        ("0 0 0 ? * MON-TUE/0", "has a step of 0"),
        ("0 0 0 1 1 ? 1999", "has no future run"),
        ("0 0 0 1 1 ? 20x", "is not a year"),
        ("0 5 1 * MON", "which schedulers combine"),
    ],
)
def test_what_is_no_schedule_is_said(text, sentence):
    with pytest.raises(ScheduleError, match=sentence):
        read_schedule(text)


@pytest.mark.parametrize("text", ["0 0/30 * ? * *", "*/30 * * * *", "10 0/30 * ? * *"])
def test_what_runs_every_half_hour_does_so_in_both_of_two_equal_hours(text: str) -> None:
    since = datetime(2027, 10, 31, 1, 45, tzinfo=BERLIN)
    found = list(islice(read_schedule(text).after(since), 5))
    assert {round(b.timestamp() - a.timestamp()) for a, b in pairwise(found)} == {1800}
    assert [moment.isoformat()[11:16] for moment in found] == [
        "02:00", "02:30", "02:00", "02:30", "03:00",
    ]  # fmt: skip
    assert found[2].isoformat().endswith("+01:00")


def test_in_the_second_of_two_equal_hours_no_run_of_the_first_is_to_come() -> None:
    since = datetime(2027, 10, 31, 2, 10, tzinfo=BERLIN, fold=1)
    first = next(read_schedule("0 30 2 ? * *").after(since))
    assert first.isoformat() == "2027-11-01T02:30:00+01:00"
    half = next(read_schedule("0 0/30 * ? * *").after(since))
    assert half.isoformat() == "2027-10-31T02:30:00+01:00"


def test_time_zones_are_looked_up_by_name_only():
    assert read_timezone("Asia/Shanghai").key == "Asia/Shanghai"
    for name in ("", "Mars/Base", "../../etc/passwd", "/etc/localtime"):
        with pytest.raises(ScheduleError):
            read_timezone(name)
