"""Read the measurements of tasks: CPU, memory, GPUs, progress, training scalars.

``submarine_runtime.agent.measurement.samples`` writes them and documents the format. They can be
read while the job runs, as far as they are shipped, and after its end.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from submarine_jobs.access import JobDirectory
from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import layout

STREAM = "samples"
#: Limits, many times the output of an agent (less than two megabytes per week): bytes and rows of
#: an attempt, bytes of a line, bytes and rows of a job.
MAX_BYTES = 4 << 20
MAX_ROWS = 40_000
MAX_LINE = 16 << 10
MAX_JOB_BYTES = 64 << 20
MAX_JOB_ROWS = 200_000
#: Maximum number of training scalars and devices of one attempt.
MAX_SCALARS, MAX_GPUS = 24, 64
MAX_NAME = 48
_READERS = 8


class Gpu(NamedTuple):
    """One device: utilization in percent and used MiB; None if the driver does not report it."""

    device: str
    percent: float | None
    memory: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of one task.

    Parameters
    ----------
    time
        Seconds since the epoch.
    seconds
        Seconds since the program of this attempt was started.
    cpu_percent
        Mean since the previous sample; 100 is one core. None for the first sample.
    memory
        Resident memory of all processes in MiB; maximum since the previous sample.
    gpu_percent, gpu_memory
        Mean percent and total MiB of the devices of the task; None without a driver.
    progress
        0 to 1; None while nothing is known.
    scalars
        The newest value of each training scalar.
    """

    time: float
    task: str
    epoch: int
    attempt: int
    seconds: float
    cpu_percent: float | None
    memory: float | None
    gpu_percent: float | None
    gpu_memory: float | None
    progress: float | None
    scalars: Mapping[str, float] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()


def read_metrics(directory: JobDirectory, task: str | None = None) -> list[Row]:
    """Return all samples of a job, by role and index of the task, attempt, and time.

    Parameters
    ----------
    task
        For example ``worker:0``; None: all tasks.

    Raises
    ------
    UsageError
        If ``task`` is not a valid task name.
    StorageError
        If the job directory cannot be read.
    """
    return MetricsReader(directory, task).fresh()


class MetricsReader:
    """Reads the new samples of a job at each call.

    Each call makes two listings per task; each segment is read once. Parameters as of
    ``read_metrics``.
    """

    def __init__(self, directory: JobDirectory, task: str | None = None) -> None:
        self._directory = directory
        self._task = task
        #: By path of an attempt: the bytes read, and the number of rows returned.
        self._read: dict[str, tuple[bytes, int]] = {}
        self._rows = 0

    def fresh(self) -> list[Row]:
        """Return new rows, ordered by role and index of the task, attempt, and time; blocks.

        Samples beyond the limits of this module are not returned.
        """
        places = [
            (layout.split_task(name), epoch_attempt, path)
            for name, parent in _tasks(self._directory, self._task)
            for epoch_attempt, path in _attempts(self._directory, parent)
        ]
        places.sort()
        with ThreadPoolExecutor(_READERS, "submarine-metrics") as pool:
            parts = list(pool.map(lambda place: self._more(place[2]), places))
        rows: list[Row] = []
        for ((role, index), attempt, path), data in zip(places, parts, strict=True):
            before, told = self._read.get(path, (b"", 0))
            if data == before:
                continue
            if sum(len(read) for read, _ in self._read.values()) > MAX_JOB_BYTES:
                break
            most = min(MAX_ROWS, told + MAX_JOB_ROWS - self._rows)
            found = list(itertools.islice(_rows(data, f"{role}:{index}", *attempt), most))
            self._read[path] = (data, max(told, len(found)))
            self._rows += len(found[told:])
            rows += found[told:]
        return rows

    def _more(self, path: str) -> bytes:
        """Return the contiguous segments of one attempt."""
        data = self._read.get(path, (b"", 0))[0]
        segments = (layout.parse_segment(name) for name in _names(self._directory, path))
        for segment in sorted(s for s in segments if s and s.stream == STREAM):
            if segment.offset < len(data):
                continue
            if segment.offset > len(data) or len(data) >= MAX_BYTES:
                break
            name = layout.segment_name(segment.stream, segment.offset)
            data += self._directory.storage.read(f"{path}/{name}", 0, MAX_BYTES - len(data))
        return data


def _tasks(directory: JobDirectory, task: str | None) -> list[tuple[str, str]]:
    """Return name and directory of each task with samples."""
    if task is not None:
        try:
            role, index = layout.split_task(task)
        except ValueError as exc:
            raise UsageError(f"{exc}.") from exc
        return [(task, directory.file(f"{layout.METRICS}/{role}-{index}"))]
    found = []
    for name in _names(directory, directory.file(layout.METRICS)):
        role, _, number = name.rpartition("-")
        try:
            layout.split_task(f"{role}:{number}")
        except ValueError:
            continue
        found.append((f"{role}:{number}", directory.file(f"{layout.METRICS}/{name}")))
    return found


def _attempts(directory: JobDirectory, parent: str) -> list[tuple[tuple[int, int], str]]:
    found = ((layout.parse_attempt(name), name) for name in _names(directory, parent))
    return [(attempt, f"{parent}/{name}") for attempt, name in found if attempt]


def _names(directory: JobDirectory, path: str) -> list[str]:
    try:
        return [entry.name for entry in directory.storage.list_directory(path)]
    except FileNotFoundError:
        return []


def _rows(data: bytes, task: str, epoch: int, attempt: int) -> Iterator[Row]:
    """Yield the rows of the lines; invalid and incomplete lines are ignored."""
    start: float | None = None
    devices: list[str] = []
    progress: float | None = None
    scalars: dict[str, float] = {}
    for line in data.split(b"\n"):
        content = _parsed(line)
        if "start" in content:
            start = _number(content["start"])
            listed = content.get("devices")
            devices = (
                [_word(name) for name in listed[:MAX_GPUS]] if isinstance(listed, list) else []
            )
            continue
        seconds = _number(content.get("t"))
        if seconds is None or start is None:
            continue
        progress = _number(content.get("p"), progress)
        changed = _scalars(content.get("s"))
        if changed:  # otherwise the rows share one mapping
            known = {**scalars, **changed}
            scalars = dict(itertools.islice(known.items(), MAX_SCALARS))
        gpus = _gpus(content.get("g"), devices)
        percents = [gpu.percent for gpu in gpus if gpu.percent is not None]
        used = [gpu.memory for gpu in gpus if gpu.memory is not None]
        yield Row(
            start + seconds,
            task,
            epoch,
            attempt,
            seconds,
            _number(content.get("c")),
            _number(content.get("m")),
            sum(percents) / len(percents) if percents else None,
            sum(used) if used else None,
            progress,
            scalars,
            gpus,
        )


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        return {}
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _gpus(raw: Any, devices: Sequence[str]) -> tuple[Gpu, ...]:
    if not isinstance(raw, list):
        return ()
    pairs = [pair for pair in raw if isinstance(pair, list) and len(pair) == 2]
    return tuple(
        Gpu(device, _number(percent), _number(used))
        for device, (percent, used) in zip(devices, pairs, strict=False)
    )


def _scalars(raw: Any) -> dict[str, float]:
    if not isinstance(raw, dict):
        return {}
    first = itertools.islice(raw.items(), MAX_SCALARS)
    values = {_word(name): _value(value) for name, value in first}
    return {name: value for name, value in values.items() if name and value is not None}


def _value(raw: Any) -> float | None:
    """Parse a scalar, which may be ``"nan"``, so that diverged training is visible."""
    if raw in ("nan", "inf", "-inf"):
        return float(raw)
    return _number(raw)


def _number(raw: Any, otherwise: float | None = None) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not math.isfinite(raw):
        return otherwise
    return float(raw)


def _word(raw: Any) -> str:
    """Return a printable name of limited length from a name that a container has sent."""
    return "".join(sign for sign in str(raw)[:MAX_NAME] if sign.isprintable())
