"""The status of a task in task mode; its events are sent over the link."""

from __future__ import annotations

from typing import Any, Callable

from submarine_runtime.protocol import EndReason, JobRecord, State
from submarine_runtime.record import MAX_EVENTS, Status

MEASURES = (
    "memory_now",
    "memory_peak",
    "cpu_seconds",
    "gpu_percent",
    "gpu_memory",
    "progress",
)


class TaskStatus(Status):
    """The task's record.

    Parameters
    ----------
    send
        Sends a line over the link.
    """

    def __init__(self, record: JobRecord, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(record)
        self._send = send
        self._events = 0
        self._waiting = ""

    def report_wait(self, sentence: str) -> None:
        """Send with the next heartbeat what the task waits for; empty: nothing."""
        self._waiting = sentence

    def event(
        self,
        kind: str,
        detail: str = "",
        *,
        state: State | None = None,
        reason: EndReason | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Send an event to the coordinator, which determines the states itself."""
        if state is not None:
            self.set_task(state=state)
            return
        self._events += 1
        if self._events <= MAX_EVENTS:
            line = {"type": "event", "kind": kind, "detail": detail[:2000], "data": data or {}}
            self._send(line)

    def begin_attempt(self, epoch: int, attempt: int) -> None:
        """Reset the measures of the previous attempt."""
        self.set_task(epoch=epoch, attempt=attempt, **dict.fromkeys(MEASURES))

    def measures(self) -> dict[str, Any]:
        """Return the fields of a heartbeat."""
        task = self._record.tasks[0]
        return {**{name: getattr(task, name) for name in MEASURES}, "waiting": self._waiting}

    @property
    def hints(self) -> list[str]:
        """Advice for the owner of the job."""
        return list(self._record.hints)
