"""The job record while it grows, under one lock.

Supervisor and publisher change it, the server reads it. Every change increments a number, so that a
reader can detect changes without comparing records.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Mapping

from submarine_runtime.protocol import (
    EndReason,
    Event,
    Failure,
    JobRecord,
    Output,
    Phase,
    State,
    TaskRecord,
    layout,
    may_follow,
    to_json,
)

#: Maximum number of events of a job of one task, except changes of state.
MAX_EVENTS = 500
MAX_MISSING = 50
MAX_WARNINGS = 50
#: Seconds for which one request is valid; the clients repeat it.
VALID_SECONDS = 60.0


class Status:
    """The record of one job.

    Parameters
    ----------
    writer
        Writer of the events.
    max_events
        Limit of the events, except changes of state; a repeated error must not add many.

    Attributes
    ----------
    earlier_events
        Number of events of other writers, which come first in the record.
    version
        Incremented by every change of the record; read without the lock.
    tensorboard_clients
        Clients that display the TensorBoard files.
    """

    def __init__(
        self, record: JobRecord, writer: str = "agent", max_events: int = MAX_EVENTS
    ) -> None:
        self._record, self._writer, self._max_events = record, writer, max_events
        self.earlier_events = len(record.events)
        self._lock = threading.Lock()
        self.version = 0
        self.tensorboard_clients = TensorBoardClients()

    @property
    def state(self) -> State:
        """The current state."""
        return self._record.state

    @property
    def progress(self) -> float | None:
        """The progress from 0 to 1; None: unknown."""
        return self._record.progress

    @property
    def first_task(self) -> TaskRecord:
        """The first, or only, task; change it with ``set_task`` only."""
        return self._record.tasks[0]

    def event(
        self,
        kind: str,
        detail: str = "",
        *,
        state: State | None = None,
        reason: EndReason | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Add an event; with ``state`` the job's state changes too.

        Parameters
        ----------
        kind
            Kind of the event.
        detail
            One sentence.
        state, reason
            New state, and end reason of a final state.
        data
            Further JSON values.

        Raises
        ------
        ValueError
            If the state may not follow the present one.
        """
        with self._lock:
            record = self._record
            if state is not None:
                if not may_follow(record.state, state):
                    raise ValueError(f"a job may not go from {record.state} to {state}")
                record.tasks[0].state = state
            self._append_event(kind, detail, record.tasks[0].task, state, reason, data)

    def _append_event(
        self,
        kind: str,
        detail: str,
        task: str | None,
        state: State | None,
        reason: EndReason | None,
        data: Mapping[str, Any] | None,
    ) -> Event | None:
        """Add an event and set the state; return None if there are too many. Needs the lock."""
        record = self._record
        if state is not None:
            record.state = state
        self.version += 1
        if len(record.events) >= self._max_events and state is None:
            return None
        number = len(record.events) - self.earlier_events
        event = Event(
            number,
            time.time(),
            kind,
            self._writer,
            state,
            reason,
            one_sentence(detail),
            task,
            dict(data or {}),
        )
        record.events.append(event)
        return event

    def set_record(self, **fields: Any) -> None:
        """Set fields of the record; equal values do not count as a change."""
        self._set(self._record, fields)

    def set_task(self, **fields: Any) -> None:
        """Set fields of the task."""
        self._set(self._record.tasks[0], fields)

    def _set(self, target: Any, fields: dict[str, Any]) -> None:
        with self._lock:
            changed = {k: v for k, v in fields.items() if getattr(target, k) != v}
            for name, value in changed.items():
                setattr(target, name, value)
            self.version += bool(changed)

    def begin_phase(self, name: str, start: float | None = None) -> None:
        """Begin a phase now, or at ``start``."""
        with self._lock:
            self._record.phases.append(Phase(name, time.time() if start is None else start))
            self.version += 1

    def end_phase(self, name: str, end: float | None = None) -> None:
        """End a phase now, or at ``end``; do nothing if it has not begun."""
        with self._lock:
            for phase in self._record.phases:
                if phase.name == name and phase.end is None:
                    phase.end = time.time() if end is None else end
                    self.version += 1

    def end_phases(self, end: float) -> None:
        """End all open phases."""
        with self._lock:
            for phase in self._record.phases:
                if phase.end is None:
                    phase.end = max(end, phase.start)
            self.version += 1

    def localizing_since(self, moment: float) -> None:
        """Set an earlier begin of the phase ``localizing``, and end of the phase ``queue``."""
        with self._lock:
            phases = {phase.name: phase for phase in self._record.phases}
            queue, localizing = phases.get("queue"), phases.get("localizing")
            if localizing is None or moment >= localizing.start:
                return
            moment = max(moment, queue.start) if queue is not None else moment
            localizing.start = moment
            if queue is not None:
                queue.end = moment
            self.version += 1

    def add_missing(self, sentence: str) -> None:
        """Add a sentence on what is missing."""
        with self._lock:
            if sentence not in self._record.missing and len(self._record.missing) < MAX_MISSING:
                self._record.missing.append(sentence)
                self.version += 1

    def warn(self, sentence: str) -> None:
        """Add a warning to the record."""
        with self._lock:
            found = self._record.warnings
            if sentence not in found and len(found) < MAX_WARNINGS:
                found.append(sentence)
                self.version += 1

    def add_output(self, path: str, size: int) -> None:
        """Add a file that was saved to the job directory."""
        with self._lock:
            self._record.outputs.append(Output(path, size))

    @property
    def has_outputs(self) -> bool:
        """Whether any file was saved to the job directory."""
        return bool(self._record.outputs)

    @property
    def lacks_checkpoints(self) -> bool:
        """Whether checkpoints are missing in the job directory, so its snapshots are restored."""
        return any(layout.CHECKPOINTS in sentence for sentence in self._record.missing)

    def set_used(self, **used: Any) -> None:
        """Set entries of ``resources["used"]``."""
        with self._lock:
            self._record.resources.setdefault("used", {}).update(used)

    def end(
        self,
        reason: EndReason,
        detail: str,
        exit_code: int | None,
        signal: int | None,
        failure: Failure | None,
    ) -> None:
        """Record how the program ended; the state follows by ``event``.

        Parameters
        ----------
        detail
            One sentence; the first 2,000 characters are kept.
        exit_code, signal
            How the process ended; None: not in this way.
        failure
            Exception of the program.
        """
        now = time.time()
        ending = {"exit_code": exit_code, "signal": signal}
        self.set_task(finished=now, **ending)
        self.set_record(reason=reason, detail=one_sentence(detail), failure=failure, **ending)

    def finish(self) -> None:
        """Record the end of the job."""
        self.set_record(finished=time.time())

    def to_json(self, events: bool = True) -> dict[str, Any]:
        """Return the record as plain JSON values, with its events or without."""
        with self._lock:
            kept, self._record.events = self._record.events, []
            try:
                plain = self._record.to_json()
            finally:
                self._record.events = kept
            if events:
                plain["events"] = [to_json(event) for event in kept]
            return plain

    def events_after(self, count: int) -> list[dict[str, Any]]:
        """Return events with a sequence number of at least ``count``, as plain JSON values."""
        with self._lock:
            return [to_json(event) for event in self._record.events[max(0, count) :]]

    @property
    def event_count(self) -> int:
        """Number of events."""
        return len(self._record.events)


class TensorBoardClients:
    """The clients of one task.

    Attributes
    ----------
    wake
        Called, in any thread, when the first client begins.
    """

    def __init__(self) -> None:
        self._valid_until = float("-inf")
        self.wake: Callable[[], None] = lambda: None

    @property
    def present(self) -> bool:
        """Whether there was a request within ``VALID_SECONDS`` seconds."""
        return time.monotonic() < self._valid_until

    def request(self) -> None:
        """Record a request."""
        begins = not self.present
        self._valid_until = time.monotonic() + VALID_SECONDS
        if begins:
            self.wake()


def one_sentence(text: str) -> str:
    """Return ``text`` without a doubled full stop at its end, at most 2,000 characters."""
    doubled = text.endswith("..") and not text.endswith("...")
    return (text[:-1] if doubled else text)[:2000]
