"""Log of the measurements of a task, one line a sample, in a file that is shipped like a log.

The first line describes the task; every other one holds seconds since the start and the
measurements: ``{"t": 12.0, "c": 98, "m": 512, "g": [[97, 1024]], "p": 0.42, "s": {"loss": 0.3}}``
is CPU percent and MiB over the interval, percent and MiB of each device, progress, and training
scalars; the last two only if they have changed. In the first hour there is a line every two
seconds; later the interval grows with the job's age, and the samples in it are combined (mean of
percentages, maximum of memory). So a week of training takes less than two megabytes.
``measurement`` measures; ``submarine_jobs.outputs`` reads the file.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any, Mapping, Sequence

from submarine_runtime.agent.shipping import LogShipper
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Store

STREAM = "samples"
VERSION = 1
INTERVAL = 2.0
#: Minimum seconds for a share of CPU: the first sample comes at once, and ticks are 10 ms.
MIN_CPU_INTERVAL = 0.2
#: From this age in seconds on, the interval between lines is this share of the age ...
FULL_UNTIL = 3600.0
SHARE = INTERVAL / FULL_UNTIL
#: ... and proportionally more if lines are longer than this number of bytes.
USUAL_LINE = 100
MAX_SCALARS = 16
MAX_NAME = 48
#: A segment of samples may wait for this share of the job's age, and at most this many seconds.
SHIP_SHARE = 1 / 16
SHIP_LONGEST = 900.0

#: Percent and MiB of a device; None if the driver does not report them.
Gpu = Sequence["float | None"]


class SampleLog:
    """The samples of one attempt of one task.

    Parameters
    ----------
    path
        The local file.
    devices
        The task's devices, in the order of the numbers in each line; empty if none is measured.

    Attributes
    ----------
    path
        The local file.
    devices
        See the parameter.
    """

    def __init__(
        self, path: str, task: str, epoch: int, attempt: int, devices: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.devices = tuple(devices)
        self._began: float | None = None
        self._next = 0.0
        self._last = 0.0
        self._cpu = 0.0
        self._aggregate = _Aggregate(len(self.devices))
        self._progress: float | None = None
        self._scalars: dict[str, str] = {}
        self._lines = self._bytes = 0
        self._failed = False
        self._head = {"v": VERSION, "task": task, "epoch": epoch, "attempt": attempt}

    def add(
        self,
        cpu_seconds: float,
        memory: float,
        gpus: Sequence[Gpu] = (),
        progress: float | None = None,
        scalars: Mapping[str, float] | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Add a measurement; raises nothing.

        Parameters
        ----------
        cpu_seconds
            CPU time used since the program's start.
        memory
            MiB now.
        gpus
            Percent and MiB of each device.
        progress
            0 to 1; None if unknown.
        scalars
            The newest value of each training scalar.
        last
            Whether the program has ended: this line is written in any case.
        """
        if self._began is None:
            self._began = time.monotonic()
            start = {"start": round(time.time(), 3), "devices": list(self.devices)}
            self._write({**self._head, **start}, "w")
        now = time.monotonic() - self._began
        self._aggregate.add(memory, gpus)
        if now < self._next and not last:
            return
        every = INTERVAL if now < FULL_UNTIL else now * SHARE * self._stretch()
        self._next = now + every - INTERVAL / 4  # The caller's clock may be a little early.
        line: dict[str, Any] = {"t": round(now, 1)}
        if now - self._last >= MIN_CPU_INTERVAL:
            used = max(0.0, cpu_seconds - self._cpu)
            line["c"] = round(100 * used / (now - self._last))
        line.update(self._aggregate.take())
        if progress is not None and progress != self._progress:
            line["p"] = self._progress = round(progress, 4)
        changed = self._changed(scalars or {})
        if changed:
            line["s"] = changed
        self._last, self._cpu = now, cpu_seconds
        self._write(line, "a")

    def _stretch(self) -> float:
        return max(1.0, self._bytes / max(1, self._lines) / USUAL_LINE)

    def _changed(self, scalars: Mapping[str, float]) -> dict[str, float | str]:
        changed: dict[str, float | str] = {}
        for name, value in scalars.items():
            short, word = name[:MAX_NAME], f"{value:.6g}"
            known = self._scalars.get(short)
            if known == word or (known is None and len(self._scalars) >= MAX_SCALARS):
                continue
            self._scalars[short] = word
            # JSON has no NaN and no infinities.
            changed[short] = float(word) if math.isfinite(value) else word
        return changed

    def _write(self, content: Mapping[str, Any], mode: str) -> None:
        line = json.dumps(content, separators=(",", ":")) + "\n"
        try:
            with open(self.path, mode, encoding="utf-8") as file:
                file.write("\n" + line if self._failed else line)
        except OSError:
            self._failed = True  # The line may be incomplete: the reader skips it.
            return
        self._failed = False
        self._lines += 1
        self._bytes += len(line)


class _Aggregate:
    """Combines several samples: means of percentages, the maximum of memory."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._start()

    def _start(self) -> None:
        self._memory = 0.0
        self._percent: list[list[float]] = [[] for _ in range(self._devices)]
        self._used: list[float | None] = [None] * self._devices

    def add(self, memory: float, gpus: Sequence[Gpu]) -> None:
        self._memory = max(self._memory, memory)
        for index, (percent, used) in enumerate(gpus[: self._devices]):
            if percent is not None:
                self._percent[index].append(percent)
            if used is not None:
                self._used[index] = max(used, self._used[index] or 0.0)

    def take(self) -> dict[str, Any]:
        """Return the fields of a line, and reset."""
        fields: dict[str, Any] = {"m": round(self._memory)}
        told = any(self._percent) or any(used is not None for used in self._used)
        if told:
            fields["g"] = [
                [
                    round(sum(percents) / len(percents)) if percents else None,
                    None if used is None else round(used),
                ]
                for percents, used in zip(self._percent, self._used)
            ]
        self._start()
        return fields


class SampleShipper(LogShipper):
    """Ships samples: fewer and fewer segments, and no index, because each line has its time."""

    continuous = False

    def note(self) -> None:
        """Do nothing: there is no index."""

    def due(self) -> bool:
        """Return whether a segment is to be published now."""
        now = time.monotonic()
        pause = max(self._interval, min(SHIP_LONGEST, (now - self._began) * SHIP_SHARE))
        return now - self._last >= pause and self.length() > self.shipped


def sample_shipper(
    store: Store, path: str, task: str, epoch: int, attempt: int, interval: float
) -> SampleShipper:
    """Return the shipper of the samples at ``path``; ``interval`` in seconds for a young job."""
    directory = layout.attempt_directory(layout.METRICS, task, epoch, attempt)
    return SampleShipper(store, directory, STREAM, path, interval, 1 << 20)
