"""Read the training scalars of a job with their steps from its TensorBoard event files.

The samples (``metrics``) have only the newest value at each measurement and no steps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from submarine_runtime.agent.measurement import scalars
from submarine_runtime.protobuf import fields
from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import EVENT_FILE

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory

#: Limits: bytes of all files, and points of a job.
MAX_BYTES = 64 << 20
MAX_POINTS = 100_000
_BLOCK = 4 << 20
#: Length and its checksum before a record, and the checksum after it.
_HEADER, _FRAME = 12, 16
#: Larger records are pictures and graphs.
_MAX_RECORD = 1 << 14


class ScalarPoint(NamedTuple):
    """A value of a scalar: its name as in the samples, step, and seconds since the epoch."""

    name: str
    step: int
    time: float
    value: float


def read_event_scalars(directory: JobDirectory) -> list[ScalarPoint]:
    """Return the scalars of an ended job's chief, by file; at most ``MAX_POINTS``.

    Raises
    ------
    StorageError
        If the job directory cannot be read.
    """
    found: list[ScalarPoint] = []
    left = MAX_BYTES
    try:
        files = sorted(directory.storage.walk(directory.file(layout.TENSORBOARD)))
    except FileNotFoundError:
        return []
    for path, size in files:
        folder, _slash, name = path.rpartition("/")
        if EVENT_FILE not in name or size > left:
            continue
        left -= size
        prefix = f"{folder}/" if folder else ""
        for record in _records(directory, f"{layout.TENSORBOARD}/{path}", size):
            for tag, value in scalars(record):
                step, time = _step_and_time(record)
                if len(found) >= MAX_POINTS:
                    return found
                found.append(ScalarPoint(f"{prefix}{tag}", step, time, value))
    return found


def _step_and_time(record: bytes) -> tuple[int, float]:
    """Return step and time of an ``Event`` message with a scalar."""
    step, time = 0, 0.0
    for number, content in fields(record):
        if number == 1 and isinstance(content, bytes):
            (time,) = struct.unpack("<d", content)
        elif number == 2 and isinstance(content, int):
            step = content
    return step, time


def _records(directory: JobDirectory, path: str, size: int) -> Iterator[bytes]:
    """Yield the small records of an event file, up to its end or to damage."""
    data, place = b"", 0
    while place + _FRAME <= size:
        if len(data) < _FRAME:
            data = directory.storage.read(directory.file(path), place, _BLOCK)
        if len(data) < _FRAME:
            return
        end = _FRAME + int(struct.unpack_from("<Q", data)[0])
        if place + end > size:
            return
        if end - _FRAME <= _MAX_RECORD:
            if len(data) < end:
                data = directory.storage.read(directory.file(path), place, _BLOCK)
            yield data[_HEADER : end - 4]
        data, place = data[end:], place + end
