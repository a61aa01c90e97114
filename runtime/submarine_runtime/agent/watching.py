"""Watches the running program: samples it, finds its progress, ends it when it must end.

Does not say why a program ended by itself (``ending``) and ships nothing.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Callable

from submarine_runtime.agent.ending import Ending
from submarine_runtime.agent.processes import Tree
from submarine_runtime.agent.program import Program
from submarine_runtime.agent.progress import Progress
from submarine_runtime.agent.status import Status
from submarine_runtime.agent.wakeup import Wakeup
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.reasons import EndReason

SAMPLE = 2.0
#: How often when the program is near its limit, and from which share of it on.
SAMPLE_NEAR = 0.25
NEAR = 0.7
LOOK_FIRST = 0.02


class Watch:
    """From the program's start to its end.

    Parameters
    ----------
    asked
        Who asked to cancel and why, or None.

    Attributes
    ----------
    stopped
        Why we have ended the program, and the sentence; None while we have not.
    """

    def __init__(
        self,
        config: AgentConfig,
        program: Program,
        status: Status,
        wakeup: Wakeup,
        logs: tuple[str, ...],
        asked: Callable[[], dict[str, str] | None],
    ) -> None:
        self._config = config
        self._program = program
        self._status = status
        self._wakeup = wakeup
        self._logs = logs
        self._asked = asked
        self._progress = Progress(logs)
        self._began = time.monotonic()
        self._kill_at: float | None = None
        self._first_line = False
        self.tree = Tree(program.pid)
        self.limit: float | None = None
        if config.memory:
            self.limit = float(config.memory + config.memory_slack)
        self.stopped: EndReason | None = None
        self.stopped_detail = ""

    def until_end(self) -> int:
        """Wait for the program's end; its exit status as subprocess gives it."""
        next_sample = 0.0
        while True:
            status = self._program.poll()
            if status is not None:
                self.look_for_first_line()
                self._look_for_progress()
                return status
            now = time.monotonic()
            self._obey(now)
            if now >= next_sample:
                next_sample = now + self._sample()
            self.look_for_first_line()
            self._wakeup.wait(self._pause(next_sample))

    def _pause(self, next_sample: float) -> float:
        now = time.monotonic()
        moments = [next_sample]
        if self._kill_at is not None:
            moments.append(self._kill_at)
        elif self._config.timeout is not None:
            moments.append(self._began + self._config.timeout)
        if not self._first_line:
            moments.append(now + LOOK_FIRST + (now - self._began) / 20)
        return max(0.0, min(moments) - now)

    def _obey(self, now: float) -> None:
        if self.stopped is None:
            asked = self._asked()
            timeout = self._config.timeout
            if asked is not None:
                self._stop(EndReason.CANCELLED, cancel_sentence(asked), now)
            elif timeout is not None and now - self._began >= timeout:
                self._stop(EndReason.TIMED_OUT, f"It ran for {timeout:g} s.", now)
        elif self._kill_at is not None and now >= self._kill_at:
            self._program.signal(signal.SIGKILL)
            self._kill_at = now + 1.0

    def _stop(self, reason: EndReason, detail: str, now: float) -> None:
        self.stopped, self.stopped_detail = reason, detail
        self._status.event("stopping", detail, reason=reason)
        self._program.signal(signal.SIGTERM)
        self._kill_at = now + self._config.kill_grace

    def _sample(self) -> float:
        """Measure; returns the seconds until the next time."""
        usage = self.tree.sample()
        self._program.guard(usage.groups)
        self._status.set_task(
            memory_now=round(usage.memory, 1),
            memory_peak=round(self.tree.peak, 1),
            cpu_seconds=round(self.tree.cpu_seconds, 1),
        )
        self._look_for_progress()
        if self.limit is None:
            return SAMPLE
        if usage.memory > self.limit and self.stopped is None:
            self.stopped = EndReason.OUT_OF_MEMORY
            self.stopped_detail = (
                f"The program used {usage.memory:.0f} MiB of {self._config.memory} MiB; "
                "it was ended before the whole container would be."
            )
            self._status.event("stopping", self.stopped_detail, reason=self.stopped)
            self._program.signal(signal.SIGKILL)
            self._kill_at = time.monotonic() + 1.0
        return SAMPLE_NEAR if usage.memory > NEAR * self.limit else SAMPLE

    def _look_for_progress(self) -> None:
        progress = self._progress.look()
        if progress is not None:
            self._status.set_task(progress=round(progress, 4))
            self._status.set_record(progress=round(progress, 4))

    def look_for_first_line(self) -> None:
        """Note the moment at which the program has first written something."""
        if self._first_line or not any(_size(path) for path in self._logs):
            return
        self._first_line = True
        self._status.end_phase("first_line")


def memory_ending(pid: int, config: AgentConfig) -> Ending | None:
    """Out of memory, if the program now holds more than its job asked for.

    YARN looks at a container's memory too, and may be first when much is taken at once; all that it
    says to the agent is SIGTERM.
    """
    if not config.memory:
        return None
    used = Tree(pid).sample().memory
    if used <= config.memory + config.memory_slack:
        return None
    return Ending(
        EndReason.OUT_OF_MEMORY,
        f"The program used {used:.0f} MiB of {config.memory} MiB, and its container was ended.",
    )


def cancel_sentence(asked: dict[str, str]) -> str:
    """Say who cancelled and why: ``Cancelled by ada: wrong learning rate.``."""
    by = asked.get("by") or "somebody"
    why = asked.get("why") or ""
    return f"Cancelled by {by}: {why}." if why else f"Cancelled by {by}."


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
