"""Measure the running program: processes, devices, progress; for the record and as samples.

``program.monitor`` acts on the measurements.
"""

from __future__ import annotations

import os
import resource
import time
from typing import TYPE_CHECKING, Sequence

from submarine_runtime.agent.measurement.progress import Progress
from submarine_runtime.agent.measurement.samples import SampleLog
from submarine_runtime.processes import ProcessTree, Usage
from submarine_runtime.record import Status
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement.activity import Activity
    from submarine_runtime.gpus import DeviceUtilization, GpuMeter, Reading


class Measurement:
    """The measurements of one program.

    Parameters
    ----------
    tree
        The program's processes.
    logs
        Log files of the program.
    samples
        Log of the samples; its devices are measured.
    tensorboard
        Directory in which event files appear; empty: none.
    folders
        Further directories in which libraries write scalars.
    activity
        Detects that the program is idle; None: not checked.

    Attributes
    ----------
    tree
        See the parameter.
    diverged
        The sentence about a loss that is no number; empty: none was seen.
    """

    def __init__(
        self,
        tree: ProcessTree,
        status: Status,
        logs: tuple[str, ...],
        samples: SampleLog | None = None,
        tensorboard: str = "",
        folders: tuple[str, ...] = (),
        activity: Activity | None = None,
    ) -> None:
        self.tree = tree
        self.diverged = ""
        self._status = status
        self._progress = Progress(logs, tensorboard, folders)
        self._began = time.monotonic()
        self._samples = samples
        self._logs, self._activity = logs, activity
        self._gpus = _meter(samples)
        self._memory = 0.0
        self._used_before = _children_seconds()

    def sample(self) -> Usage:
        """Measure everything; return what the processes use."""
        usage = self.tree.sample()
        self._update_progress()
        self._status.set_task(memory_now=round(usage.memory, 1))
        self._note(max(usage.memory, self._memory))
        self._memory = usage.memory
        if self._activity is not None:
            readings = self._gpus.latest() if self._gpus is not None else ()
            progress = self._progress
            shared = ([_size(path) for path in self._logs], progress.value, dict(progress.scalars))
            percents = [reading.percent for reading in readings]
            self._activity.update(self.tree.root, self.tree.members, shared, percents)
        return usage

    def quick_memory(self) -> float:
        """Return only the memory, in MiB, at low cost."""
        used = self.tree.quick_memory()
        self._memory = max(self._memory, used)
        return used

    def end(self) -> None:
        """Take the last measurement, after the program has ended and was reaped."""
        self._update_progress(last=True)
        # getrusage has the exact CPU time of a reaped program, even a short one.
        used = _children_seconds() - self._used_before
        self.tree.cpu_seconds = max(self.tree.cpu_seconds, used)
        self._note(self._memory, last=True)
        if self._gpus is not None:
            self._gpus.stop()

    def idleness(self) -> Sequence[DeviceUtilization]:
        """Return the mean utilization of each device."""
        return self._gpus.idleness() if self._gpus is not None else ()

    def _update_progress(self, *, last: bool = False) -> None:
        progress = self._progress.update(last=last)
        if progress is not None:
            self._status.set_task(progress=round(progress, 4))
            self._status.set_record(progress=round(progress, 4))
        seconds = time.monotonic() - self._began
        name = "" if self.diverged else self._progress.no_number(seconds, last=last)
        if name:
            self.diverged = _(
                "{name} was {value:g} {seconds:.0f} s after the program's start: look for invalid "
                "values in the data, or lower the learning rate."
            ).format(name=name, value=self._progress.scalars[name], seconds=seconds)
            self._status.event("warning", self.diverged)

    def _note(self, memory: float, last: bool = False) -> None:
        self._status.set_task(
            memory_peak=round(self.tree.peak, 1), cpu_seconds=round(self.tree.cpu_seconds, 1)
        )
        readings: Sequence[Reading] = ()
        if self._gpus is not None:
            readings = self._gpus.latest()
            percent, used = self._gpus.totals()
            self._status.set_task(gpu_percent=percent, gpu_memory=used)
        if self._samples is not None:
            self._samples.add(
                self.tree.cpu_seconds,
                memory,
                [reading[:2] for reading in readings],
                self._progress.value,
                self._progress.scalars,
                last=last,
            )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _meter(samples: SampleLog | None) -> GpuMeter | None:
    if samples is None or not samples.devices:
        return None
    # cost: ctypes and the driver of the GPUs.
    from submarine_runtime.gpus import GpuMeter

    return GpuMeter(samples.devices)
