"""Records from untrusted JSON: each is a record of the declared types, or one error."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.model import InvalidRecordError, read_part, read_record
from submarine_runtime.protocol import (
    PROTOCOL_VERSION,
    EndReason,
    Event,
    Failure,
    JobRecord,
    Output,
    Phase,
    State,
    TaskRecord,
    TracebackFrame,
)

MINIMAL: dict[str, Any] = {"job_id": "a-20261120-7f3a", "name": "a", "state": "RUNNING"}
PARTS = (JobRecord, TaskRecord, Event, Phase, Output, Failure, TracebackFrame)
WORDS = [str(word.value) for kind in (State, EndReason) for word in kind]
NAMES = sorted({field.name for part in PARTS for field in fields(part)})

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*WORDS, "\ud800", 10**400])
)
VALUES = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=12,
)


def check_types(value: Any, declared: Any) -> None:
    """Fail unless each field of a dataclass has a value of its declared type."""
    if declared is Any:
        return
    if is_dataclass(value):
        assert type(value) is declared
        for name, inner in get_type_hints(declared).items():
            check_types(getattr(value, name), inner)
        return
    arguments: Any = getattr(declared, "__args__", ())
    if type(None) in arguments:
        if value is not None:
            check_types(value, arguments[0])
    elif isinstance(value, list):
        for item in value:
            check_types(item, arguments[0])
    elif isinstance(value, dict):
        for key, item in value.items():
            assert isinstance(key, str)
            check_types(item, arguments[1])
    else:
        assert type(value) is declared


def check(data: object) -> None:
    try:
        record = read_record(data)
    except InvalidRecordError as error:
        message = str(error)
        assert message.startswith("The record of ")
        assert len(message) < 500
        assert message.isprintable()
        return
    check_types(record, JobRecord)
    assert json.loads(json.dumps(record.to_json())).keys() == MINIMAL.keys() | {
        field.name for field in fields(JobRecord)
    }


@given(VALUES | st.binary() | st.text())
def test_any_value_is_a_record_or_one_error(data: object) -> None:
    check(data)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2))
def test_a_record_with_any_values_is_a_record_or_one_error(changed: dict[str, Any]) -> None:
    data = {**MINIMAL, **changed}
    check(data)
    check(json.dumps(data).encode())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"state": "EATEN"}, "Invalid enum value 'EATEN', at state"),
        ({"exit_code": "0"}, "Expected `int | null`, got `str`, at exit_code"),
        ({"user": None}, "Expected `str`, got `null`, at user"),
        ({"exit_code": True}, "Expected `int | null`, got `bool`, at exit_code"),
        ({"tasks": [{"task": "worker:0", "role": "worker"}]}, "`index`, at tasks[0]"),
        ({"logs": {"worker:0/e1-a1/stdout": 0.5}}, "Expected `int`, got `float`, at logs[...]"),
        ({"version": PROTOCOL_VERSION + 1}, "is newer than"),
    ],
)
def test_an_error_names_job_and_field(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        read_record({**MINIMAL, **change}, "digits-1")
    assert str(caught.value).startswith("The record of digits-1 is invalid: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"job_id":', "not valid JSON"),
        (b"9" * 5000, "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b"{}", "missing required field `job_id`"),
    ],
)
def test_other_texts_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidRecordError, match=r"^The record of a job is invalid: ") as caught:
        read_record(data)
    assert problem in str(caught.value)


def test_what_a_newer_version_adds_is_ignored() -> None:
    task = {"task": "worker:0", "role": "worker", "index": 0, "colour": "red"}
    record = read_record({**MINIMAL, "mood": [1], "tasks": [task], "reason": "eaten_by_whale"})
    assert record.tasks == [TaskRecord("worker:0", "worker", 0)]
    assert (str(record.reason), record.reason) == ("eaten_by_whale", EndReason("eaten_by_whale"))
    assert record.reason not in set(EndReason)
    assert read_record(json.dumps(record.to_json())) == record


@given(VALUES)
def test_a_part_is_read_or_refused(data: object) -> None:
    try:
        event = read_part(Event, data)
    except InvalidRecordError:
        return
    check_types(event, Event)


#: Pauses inside msgspec's analysis of each class, so that the threads meet there.
THREADS = """\
import threading, time
from msgspec import _utils
from submarine_jobs.model import read_part, read_record
from submarine_runtime.protocol import TaskRecord

analyse = _utils.get_class_annotations
def paused(kind):
    time.sleep(0.005)
    return analyse(kind)
_utils.get_class_annotations = paused

record = {"job_id": "a", "name": "a", "state": "RUNNING", "tasks": [{"role": "worker", "index": 1}]}
reads = [
    lambda: read_record(record),
    lambda: read_part(TaskRecord, record["tasks"][0]),
    lambda: read_record({**record, "tasks": 1}),
]
def work(read):
    for _ in range(20):
        try:
            read()
        except ValueError:
            pass
threads = [threading.Thread(target=work, args=(reads[n % 3],)) for n in range(9)]
for thread in threads:
    thread.start()
    time.sleep(0.002)
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_the_first_records_may_be_read_by_several_threads() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
