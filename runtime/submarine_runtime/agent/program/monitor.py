"""Monitor the running program and end it if required: cancel, timeout, memory limit.

``ending`` determines why a program ended by itself; ``measuring`` measures.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import TYPE_CHECKING, Callable

from submarine_runtime.agent.program.ending import Ending
from submarine_runtime.agent.program.process import Program
from submarine_runtime.agent.program.wakeup import Wakeup
from submarine_runtime.network import PortUse
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.reasons import EndReason

# Imported before it is needed: YARN deletes the archive of this code when it sends SIGTERM.
from submarine_runtime.record import Status, resource_advice as hints

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement import SampleLog

SAMPLE = 2.0
#: Seconds between two quick memory checks: a program that allocates much memory at once must be
#: detected before YARN, which checks every 3 s and then ends the whole container.
GLANCE = 0.25
LOOK_FIRST = 0.02


class Watch:
    """Monitors the program from its start to its end.

    Parameters
    ----------
    asked
        Returns a request to end the program, or None.
    samples
        Log of the measurements; its devices are measured too.
    tensorboard
        Directory in which the program's event files appear; empty: none.
    meeting
        Detects whether the program uses its rendezvous port; None: not checked.

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
        asked: Callable[[], dict[str, str] | None],
        samples: SampleLog | None = None,
        tensorboard: str = "",
        meeting: PortUse | None = None,
    ) -> None:
        # Imported here, because the program runs already and does not wait for the import.
        from submarine_runtime.agent.measurement import Measure

        self._config = config
        self._program = program
        self._status = status
        self._wakeup = wakeup
        self._logs = logs
        self._asked = asked
        self._meeting = meeting
        self._measure = Measure(program.tree, status, logs, samples, tensorboard)
        self._began = time.monotonic()
        self._kill_at: float | None = None
        self._first_line = False
        self.tree = self._measure.tree
        self.limit: float | None = None
        if config.memory:
            self.limit = float(config.memory + config.memory_slack)
        self.stopped: EndReason | None = None
        self.stopped_detail = ""

    def until_end(self) -> int:
        """Wait for the program's end; return its exit status as subprocess does."""
        next_sample = next_glance = 0.0
        while True:
            status = self._program.poll()
            if status is not None:
                self.look_for_first_line()
                self._measure.end()
                if self._meeting is not None:
                    self._meeting.look(last=True)
                return status
            now = time.monotonic()
            self._obey(now)
            if now >= next_sample:
                next_sample = now + SAMPLE
                usage = self._measure.sample()
                self._program.guard(usage.groups)
                self._check_memory(usage.memory)
            elif now >= next_glance and self.limit is not None:
                self._check_memory(self._measure.glance())
            if now >= next_glance:
                next_glance = now + GLANCE
                if self._meeting is not None:
                    self._meeting.look()
            self.look_for_first_line()
            self._wakeup.wait(self._pause(min(next_sample, next_glance)))

    def hints(self, ending: Ending) -> list[str]:
        """Return advice for the owner after the program has ended."""
        return hints.hints(
            asked=self._config.memory,
            peak=self.tree.peak,
            seconds=time.monotonic() - self._began,
            succeeded=ending.reason is EndReason.SUCCEEDED,
            gpus=self._measure.idleness(),
            failure=ending.failure if self._config.gpus else None,
        )

    def _pause(self, next_look: float) -> float:
        now = time.monotonic()
        moments = [next_look]
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
                ending = asked_ending(asked)
                self._stop(ending.reason, ending.detail, now)
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

    def _check_memory(self, used: float) -> None:
        if self.limit is None or used <= self.limit or self.stopped is not None:
            return
        # First of all, because the program may allocate more memory in the meantime.
        self._program.signal(signal.SIGKILL)
        self._kill_at = time.monotonic() + 1.0
        self.stopped = EndReason.OUT_OF_MEMORY
        self.stopped_detail = (
            f"{hints.memory_sentence(used, self._config.memory or 0)} "
            "It was ended before the whole container would be."
        )
        self._status.event("stopping", self.stopped_detail, reason=self.stopped)

    def look_for_first_line(self) -> None:
        """Record the time at which the program has first written something."""
        if self._first_line or not any(_size(path) for path in self._logs):
            return
        self._first_line = True
        self._status.end_phase("first_line")


def memory_ending(program: Program, config: AgentConfig) -> Ending | None:
    """Return an out-of-memory ending if the program uses, or has just used, more than its limit.

    YARN checks a container's memory too, and may be first if much is allocated at once; the agent
    then receives only SIGTERM. A program that the same signal has ended is measured by the kernel's
    counter for children.
    """
    if not config.memory:
        return None
    code = program.poll()
    if code is None:
        used = program.tree.surge()
    elif code in (-signal.SIGTERM, -signal.SIGKILL) and not program.sent(-code):
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    else:
        return None
    if used <= config.memory + config.memory_slack:
        return None
    return Ending(
        EndReason.OUT_OF_MEMORY,
        f"{hints.memory_sentence(used, config.memory)} Its container was ended.",
    )


def asked_ending(asked: dict[str, str]) -> Ending:
    """Return the ending for a request; see ``Cancelling.asked``."""
    if asked.get("reason"):
        return Ending(EndReason(asked["reason"]), asked.get("why") or "")
    return Ending(EndReason.CANCELLED, cancel_sentence(asked))


def cancel_sentence(asked: dict[str, str]) -> str:
    """Return the sentence of a cancel: ``Cancelled by ada: wrong learning rate.``."""
    cancelled = f"Cancelled by {asked['by']}" if asked.get("by") else "Cancelled"
    why = asked.get("why") or ""
    return f"{cancelled}: {why}." if why else f"{cancelled}."


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
