"""Monitor the running program to its end; end it if required: cancel, timeout, memory limit."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Callable, Mapping

from submarine_runtime.agent.measurement import SampleLog
from submarine_runtime.agent.program.ending import (
    Ending,
    ProgramFacts,
    determine_ending,
    requested_ending,
)
from submarine_runtime.agent.program.failure import last_line, name_cells
from submarine_runtime.agent.program.first_failure import FailedProcess, first_failure
from submarine_runtime.agent.program.process import Program
from submarine_runtime.agent.program.wakeup import Wakeup
from submarine_runtime.network import PortUse
from submarine_runtime.processes import kernel_memory_kills
from submarine_runtime.protocol import AgentConfig, EndReason, layout
from submarine_runtime.record import Status, memory_sentence, resource_hints
from submarine_runtime.storage import Scratch
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement import Activity

SAMPLE = 2.0
#: Seconds between two quick memory checks: a program that allocates much memory at once must be
#: detected before YARN, which checks every 3 s and then ends the whole container.
QUICK_CHECK_SECONDS = 0.25
FIRST_LINE_PAUSE = 0.02
#: A disk with less free space, in bytes, counts as full.
DISK_FULL = 1 << 16
#: Number of bytes at the end of stderr that are searched for the message of a taken port.
PORT_TAIL = 1 << 14
#: Reasons whose sentence describes the end of one process.
_OF_ONE_PROCESS = frozenset(
    {
        EndReason.DISK_FULL,
        EndReason.IMPORT_ERROR,
        EndReason.KILLED_BY_SIGNAL,
        EndReason.PROGRAM_ERROR,
    }
)
#: Where libraries write training scalars by default, below the working directory and checkpoints:
#: Lightning, PyTorch and the Trainer of Hugging Face, and the name in Lightning's documentation.
SCALAR_FOLDERS = ("lightning_logs", "runs", "logs")


class ProgramMonitor:
    """Monitors the program from its start to its end.

    Parameters
    ----------
    end_request
        Returns a request to end the program, or None.
    samples
        Log of the measurements; its devices are measured too.
    tensorboard
        Directory in which the program's event files appear; empty: none.
    folders
        Further directories in which libraries write training scalars.
    port_use
        Detects whether the program uses its rendezvous port; None: not checked.
    activity
        Detects that the program is idle; None: not checked.

    Attributes
    ----------
    stopped
        Why this object has ended the program, and the sentence; None if it has not.
    """

    def __init__(
        self,
        config: AgentConfig,
        program: Program,
        status: Status,
        wakeup: Wakeup,
        logs: tuple[str, ...],
        end_request: Callable[[], dict[str, str] | None],
        samples: SampleLog | None = None,
        tensorboard: str = "",
        folders: tuple[str, ...] = (),
        port_use: PortUse | None = None,
        activity: Activity | None = None,
    ) -> None:
        # cost: the program runs already and does not wait for this import.
        from submarine_runtime.agent.measurement import Measurement

        self._config = config
        self._program = program
        self._status = status
        self._wakeup = wakeup
        self._logs = logs
        self._end_request = end_request
        self._port_use = port_use
        self._measure = Measurement(
            program.tree, status, logs, samples, tensorboard, folders, activity
        )
        self._began = time.monotonic()
        self._kill_at: float | None = None
        self._first_line = False
        self.tree = self._measure.tree
        self.limit: float | None = None
        if config.size.memory:
            self.limit = float(config.size.memory + config.memory_slack)
        self.stopped: EndReason | None = None
        self.stopped_detail = ""

    def until_end(self) -> int:
        """Wait for the program's end; return its exit status as subprocess does."""
        next_sample = next_quick_check = 0.0
        while True:
            status = self._program.poll()
            if status is not None:
                self._check_first_line()
                self._measure.end()
                if self._port_use is not None:
                    self._port_use.check(last=True)
                return status
            now = time.monotonic()
            self._check_end(now)
            if now >= next_sample:
                next_sample = now + SAMPLE
                usage = self._measure.sample()
                self._program.guard(usage.groups)
                self._check_memory(usage.memory)
            elif now >= next_quick_check and self.limit is not None:
                self._check_memory(self._measure.quick_memory())
            if now >= next_quick_check:
                next_quick_check = now + QUICK_CHECK_SECONDS
                if self._port_use is not None:
                    self._port_use.check()
            self._check_first_line()
            self._wakeup.wait(self._pause(min(next_sample, next_quick_check)))

    def hints(self, ending: Ending) -> list[str]:
        """Return advice for the owner after the program has ended."""
        found = [self._measure.diverged] if self._measure.diverged else []
        return found + resource_hints(
            requested=self._config.size.memory,
            peak=self.tree.peak,
            seconds=time.monotonic() - self._began,
            succeeded=ending.reason is EndReason.SUCCEEDED,
            gpus=self._measure.idleness(),
            failure=ending.failure if self._config.size.gpus else None,
        )

    def _pause(self, next_check: float) -> float:
        now = time.monotonic()
        moments = [next_check]
        if self._kill_at is not None:
            moments.append(self._kill_at)
        elif self._config.spec.timeout is not None:
            moments.append(self._began + self._config.spec.timeout)
        if not self._first_line:
            moments.append(now + FIRST_LINE_PAUSE + (now - self._began) / 20)
        return max(0.0, min(moments) - now)

    def _check_end(self, now: float) -> None:
        if self.stopped is None:
            end_request = self._end_request()
            timeout = self._config.spec.timeout
            if end_request is not None:
                ending = requested_ending(end_request)
                self._stop(ending.reason, ending.detail, now)
            elif timeout is not None and now - self._began >= timeout:
                self._stop(
                    EndReason.TIMED_OUT, _("It ran for {timeout:g} s.").format(timeout=timeout), now
                )
        elif self._kill_at is not None and now >= self._kill_at:
            self._program.signal(signal.SIGKILL)
            self._kill_at = now + 1.0

    def _stop(self, reason: EndReason, detail: str, now: float) -> None:
        self.stopped, self.stopped_detail = reason, detail
        self._status.event("stopping", detail, reason=reason)
        self._program.signal(signal.SIGTERM)
        self._kill_at = now + self._config.kill_grace

    def _check_memory(self, used: float) -> None:
        if self.limit is None or used <= self.limit or self.stopped is not None:
            return
        # First of all, because the program may allocate more memory in the meantime.
        self._program.signal(signal.SIGKILL)
        self._kill_at = time.monotonic() + 1.0
        self.stopped = EndReason.OUT_OF_MEMORY
        self.stopped_detail = _(
            "{memory_sentence} It was ended before the whole container would be."
        ).format(memory_sentence=memory_sentence(used, self._config.size.memory or 0))
        self._status.event("stopping", self.stopped_detail, reason=self.stopped)

    def _check_first_line(self) -> None:
        """Record the time at which the program has first written something."""
        if self._first_line or not any(_size(path) for path in self._logs):
            return
        self._first_line = True
        self._status.end_phase("first_line")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def collect_facts(
    scratch: Scratch,
    stderr: str,
    code: int,
    *,
    shell: bool,
    watch: ProgramMonitor,
    port_messages: tuple[str, ...] = (),
    labels: list[str] | None = None,
) -> tuple[ProgramFacts, FailedProcess | None]:
    """Return the facts of a program that ended with the status ``code``; the process that failed.

    Parameters
    ----------
    stderr
        Path of the log.
    shell
        Whether the program is a shell command.
    watch
        The monitor of the program.
    port_messages
        Texts in stderr that mean a taken port.
    labels
        One for each process of the program; None: one process.
    """
    labels = labels or ["0"]
    first = None
    if code != 0:
        first = first_failure(scratch.root, scratch.launch, stderr, code, labels)
    facts = ProgramFacts(
        code if first is None or watch.stopped is not None else first.status,
        shell,
        watch.stopped,
        watch.stopped_detail,
        peak=watch.tree.peak,
        limit=watch.limit,
    )
    if not shell:
        facts.started = os.path.exists(os.path.join(scratch.launch, "started"))
    if first is not None:
        facts.failure, facts.kind = first.failure, first.kind
        facts.last_line = last_line(stderr, labels[first.number] if len(labels) > 1 else "")
        facts.disk_full = _disk_full(scratch.root, scratch.logs)
        facts.port_taken = _last_line_with(stderr, port_messages)
    if facts.failure is not None:
        facts.failure = name_cells(facts.failure, scratch.program)
    return facts, first


def _name_rank(ending: Ending, rank: int, *, several: bool) -> None:
    """Add the rank of the process that failed first; the task names it if there is one process."""
    if ending.failure is not None:
        ending.failure.rank = rank
    if several and ending.detail and ending.reason in _OF_ONE_PROCESS:
        ending.detail = _("Rank {rank}: {detail}").format(rank=rank, detail=ending.detail)


def _last_line_with(path: str, words: tuple[str, ...]) -> str:
    """Return the last line of the end of a log that contains one of some words; empty: none."""
    if not words:
        return ""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - PORT_TAIL))
            lines = file.read(PORT_TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = (line for line in reversed(lines) if any(word in line for word in words))
    return next(found, "").strip()[:300]


def _disk_full(*paths: str) -> bool:
    for path in paths:
        try:
            info = os.statvfs(path)
        except OSError:
            continue
        if info.f_bavail * info.f_frsize < DISK_FULL or (info.f_files and not info.f_favail):
            return True
    return False


def monitor_program(
    config: AgentConfig,
    program: Program,
    status: Status,
    wakeup: Wakeup,
    scratch: Scratch,
    logs: Mapping[str, str],
    end_request: Callable[[], dict[str, str] | None],
    samples: SampleLog | None = None,
    port_messages: tuple[str, ...] = (),
    port_use: PortUse | None = None,
    labels: list[str] | None = None,
    first_rank: int | None = None,
    activity: Activity | None = None,
) -> Ending:
    """Monitor the program until it and its processes have ended; return the ending.

    Parameters
    ----------
    end_request
        Returns a request to end the program, or None; called after every event.
    samples
        Log of the measurements.
    port_messages
        Texts in stderr that mean a taken port; empty: not searched.
    port_use
        Detects whether the program uses its rendezvous port.
    labels
        One for each process of the program, before each line of its output; None: one process.
    first_rank
        Rank of its first process; None if the job has only one.
    activity
        Detects that the program is idle.
    """
    kills = kernel_memory_kills()
    watch = ProgramMonitor(
        config,
        program,
        status,
        wakeup,
        tuple(logs.values()),
        end_request,
        samples,
        scratch.outputs[layout.TENSORBOARD],
        tuple(
            os.path.join(place, name)
            for place in (scratch.program, scratch.outputs[layout.CHECKPOINTS])
            for name in SCALAR_FOLDERS
        ),
        port_use,
        activity,
    )
    code = watch.until_end()
    left = program.end_remaining_processes(watch.tree.known)
    program.release()
    # After a request to end, children may need a little longer than the program.
    if left and watch.stopped is None:
        what = "a process" if left == 1 else _("{left} processes").format(left=left)
        status.event(
            "warning",
            _("The agent ended {what} that the program had left behind.").format(what=what),
        )
    status.set_used(
        memory_peak=round(watch.tree.peak, 1), cpu_seconds=round(watch.tree.cpu_seconds, 1)
    )
    facts, first = collect_facts(
        scratch,
        logs["stderr"],
        code,
        shell=config.task_role.command is not None,
        watch=watch,
        port_messages=port_messages,
        labels=labels,
    )
    facts.kernel_kills = kernel_memory_kills() - kills
    ending = determine_ending(facts)
    if first is not None:
        ending.failed = first.time or time.time()
        if first_rank is not None:
            _name_rank(ending, first_rank + first.number, several=len(labels or ()) > 1)
    status.set_record(hints=watch.hints(ending))
    return ending
