"""Read records of jobs, and parts of them, from JSON that a container or another user wrote.

The declared types of the fields are checked, so that readers of a record need no checks of types.
Numbers and texts may have any value; ``display.sanitize`` and ``text`` bound them.
"""

from __future__ import annotations

import json
import threading
from typing import TypeVar

import msgspec

from submarine_jobs.errors import ClusterError
from submarine_jobs.text import one_line
from submarine_runtime.protocol import PROTOCOL_VERSION, JobRecord
from submarine_runtime.translation import _

T = TypeVar("T")
_MAX_NAME, _MAX_PROBLEM = 80, 300
_analysed: set[type] = set()
_analysing = threading.Lock()


class InvalidRecordError(ClusterError, ValueError):
    """The JSON of a record, or of a part of one, does not have the declared form."""


def read_record(data: object, job_id: str = "") -> JobRecord:
    """Return a record from JSON text or a JSON value; unknown fields are ignored.

    Parameters
    ----------
    job_id
        The job that the error message names; empty: the one that the record names.

    Raises
    ------
    InvalidRecordError
        If it is not JSON, has a newer version, or a field is missing or has another type.
    """
    value: object = None
    try:
        value = json.loads(data) if isinstance(data, (str, bytes)) else data
        version = value.get("version") if isinstance(value, dict) else None
        if not isinstance(version, int) or version <= PROTOCOL_VERSION:
            return _convert(value, JobRecord)
        problem = _("version {version} is newer than {newest}, which this Submarine reads").format(
            version=str(version)[:20], newest=PROTOCOL_VERSION
        )
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        problem = _problem(exc)
    named = job_id or (value.get("job_id") if isinstance(value, dict) else None)
    job = one_line(named, _MAX_NAME) if isinstance(named, str) else _("a job")
    raise InvalidRecordError(
        _("The record of {job} is invalid: {problem}.").format(job=job, problem=problem)
    )


def prepare_reader() -> None:
    """Let msgspec analyse the types of a record (2 ms), so that no request waits for it."""
    _analyse(JobRecord)


def read_part(kind: type[T], data: object) -> T:
    """Return an event, a task or a phase of a record from JSON text or a JSON value.

    Raises
    ------
    InvalidRecordError
        If it is not JSON, or a field is missing or has another type.
    """
    try:
        value = json.loads(data) if isinstance(data, (str, bytes)) else data
        return _convert(value, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise InvalidRecordError(
            _("A part of a record ({kind}) is invalid: {problem}.").format(
                kind=kind.__name__, problem=_problem(exc)
            )
        ) from None


def _convert(value: object, kind: type[T]) -> T:
    if kind not in _analysed:
        _analyse(kind)
    return msgspec.convert(value, kind)


def _analyse(kind: type) -> None:
    """Let msgspec analyse a type and the types of its fields in one thread.

    msgspec publishes its description of a dataclass before it is complete: a second thread that
    converts to that class meanwhile ends the process with a segmentation fault (0.22.0).
    """
    with _analysing:
        msgspec.json.Decoder(kind)
        _analysed.add(kind)


def _problem(error: Exception) -> str:
    """Return what is wrong and where: ``Expected `int`, got `str`, at tasks[0].index``."""
    if isinstance(error, RecursionError):
        return _("it is nested too deeply")
    if not isinstance(error, msgspec.ValidationError):
        return _("it is not valid JSON")
    problem, at, path = str(error).rpartition(" - at `$")
    return one_line(f"{problem}, at {path.strip('.`')}" if at else path, _MAX_PROBLEM)
