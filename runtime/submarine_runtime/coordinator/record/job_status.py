"""The record of a distributed job while the job runs, under one lock.

Each event is also a line of a file in the working directory, so that a restarted coordinator
continues with the same event numbers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Mapping, Sequence

from submarine_runtime.coordinator.record.journal import Journal
from submarine_runtime.coordinator.record.resource_hints import job_hints
from submarine_runtime.protocol import (
    LOCALIZED,
    EndReason,
    Event,
    Failure,
    JobRecord,
    Output,
    State,
    TaskRecord,
    from_json,
    to_json,
)
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.record import MAX_UNSAVED, Status, one_sentence, unsaved_sentences
from submarine_runtime.translation import _

#: Limit of the events, except changes of state: 1,000 tasks may each start, end and be lost once.
MAX_EVENTS = 5000
MAX_OUTPUTS = 5000
#: Tasks that are named in a sentence about a file that several tasks wrote.
_NAMED_TASKS = 3
#: Fields of a task that a heartbeat may contain.
MEASUREMENTS = ("memory_now", "memory_peak", "cpu_seconds", "gpu_percent", "gpu_memory", "progress")


class JobStatus(Status):
    """The record of a job with any number of tasks.

    Parameters
    ----------
    writer
        Writer of the events, ``coordinator-1``.
    event_file
        The file of events so far.
    shipped
        Events of this writer in the job directory, for a file that is incomplete.
    arrived
        When this container was on its node; None: not known.

    Attributes
    ----------
    restored_events
        Number of events that an earlier process of this writer had added.
    unpublished
        Whether there are events that the job directory does not have.
    """

    def __init__(
        self,
        record: JobRecord,
        writer: str,
        event_file: Journal,
        shipped: Sequence[Event] = (),
        arrived: float | None = None,
    ) -> None:
        super().__init__(record, writer, MAX_EVENTS)
        self._event_file = event_file
        self._arrived = arrived
        for event in record.events:
            self._update_phases(event.state, event.time, event.kind)
        self._by_name = {task.task: task for task in record.tasks}
        self._hints: dict[str, list[str]] = {}
        # Task -> number and bytes of its saved files, and its files that were not saved.
        self._saved: dict[str, tuple[int, int]] = {}
        self._unsaved: dict[str, dict[str, Any]] = {}
        self.unpublished = False
        self.restored_events = 0
        if not event_file.is_new:
            self._restore_events(shipped)

    def _restore_events(self, shipped: Sequence[Event]) -> None:
        events = [from_json(Event, entry) for entry in self._event_file.entries()]
        for event in shipped[len(events) :]:
            self._event_file.append(to_json(event))
            events.append(event)
        self.restored_events = len(events)
        for event in events:
            self._record.events.append(event)
            if event.state is not None:
                self._record.state = event.state
            self._update_phases(event.state, event.time, event.kind)

    def _update_phases(self, state: State | None, timestamp: float, kind: str = "state") -> None:
        """Derive the phases from the events, so that a restarted coordinator has them too."""
        if kind == "claimed" and any(p.name == "queue" and not p.end for p in self._record.phases):
            arrived = timestamp if self._arrived is None else min(self._arrived, timestamp)
            self.end_phases(arrived)
            self.begin_phase("master_start", arrived)
            self.end_phases(timestamp)
            self.begin_phase("containers", timestamp)
        elif state is State.STARTING:
            self.end_phases(timestamp)
            self.begin_phase("localizing", timestamp)
        elif kind == LOCALIZED:
            self.end_phases(timestamp)
            self.begin_phase("start", timestamp)
        elif state is State.RUNNING:
            self.end_phases(timestamp)
            self.begin_phase("run", timestamp)
        elif state is State.FINISHING:
            self.end_phases(timestamp)
            self.begin_phase("save", timestamp)
        elif state is State.RESTARTING:
            self.end_phases(timestamp)

    def add_event(
        self,
        kind: str,
        detail: str = "",
        task: str | None = None,
        state: State | None = None,
        reason: EndReason | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an event; with ``state`` the job's state changes too.

        Parameters
        ----------
        task
            Name of the task; None: the job.
        data
            Further JSON values.
        """
        with self._lock:
            event = self._append_event(kind, detail, task, state, reason, data)
            if event is None:
                return
            self._event_file.append(to_json(event))
            self.unpublished = True
        self._update_phases(state, event.time, kind)

    def task_record(self, name: str) -> TaskRecord:
        """Return the record of one task; change it with ``set_task_fields`` only."""
        return self._by_name[name]

    def set_task_fields(self, name: str, **fields: Any) -> None:
        """Set fields of a task; equal values are no change."""
        self._set(self._by_name[name], fields)

    def set_measurements(self, name: str, heartbeat: Mapping[str, Any]) -> None:
        """Set the measurements of a heartbeat."""
        changed = {
            key: heartbeat[key]
            for key in MEASUREMENTS
            if isinstance(heartbeat.get(key), (int, float, type(None))) and key in heartbeat
        }
        if changed:
            self._set(self._by_name[name], changed)

    def task_json(self, name: str) -> dict[str, Any]:
        """Return a task's record as JSON values."""
        with self._lock:
            plain: dict[str, Any] = to_json(self._by_name[name])
            return plain

    def log_lengths(self, name: str, message: Mapping[str, Any]) -> dict[str, int]:
        """Return the lengths of an attempt's logs, by their keys in the record."""
        task, logs = self._by_name[name], message.get("logs")
        epoch, attempt = message.get("epoch", task.epoch), message.get("attempt", task.attempt)
        lengths = {}
        for key, length in logs.items() if isinstance(logs, Mapping) else ():
            whole = key if "/" in key else f"{name}/{attempt_name(epoch, attempt)}/{key}"
            lengths[str(whole)[:200]] = int(length)
        return lengths

    def add_end_report(self, name: str, message: Mapping[str, Any]) -> None:
        """Add logs, outputs and missing or unsaved files that an agent reports at its end."""
        with self._lock:
            self._record.logs.update(self.log_lengths(name, message))
            for raw in _list(message.get("outputs")):
                if isinstance(raw, Mapping) and len(self._record.outputs) < MAX_OUTPUTS:
                    output = from_json(Output, raw)
                    same = [o for o in self._record.outputs if o.path == output.path]
                    for old in same:
                        self._record.outputs.remove(old)
                    self._record.outputs.append(output)
            if "hints" in message:
                self._hints[name] = [str(words)[:300] for words in _list(message["hints"])[:8]]
            self.version += 1
        for sentence in _list(message.get("missing")):
            self.add_missing(f"{name}: {sentence}"[:500])
        for sentence in _list(message.get("warnings")):
            self.warn(f"{name}: {sentence}"[:500])
        with suppress(KeyError, TypeError, ValueError):
            count, size = map(int, message["saved"])
            self._saved[name] = (count, size)
        with suppress(KeyError, TypeError, ValueError):
            unsaved = message["unsaved"]
            files = [(str(path)[:200], int(size)) for path, size in unsaved["files"][:MAX_UNSAVED]]
            counts = {"count": int(unsaved["count"]), "size": int(unsaved["size"])}
            self._unsaved[name] = {"files": files, **counts}

    def set_outcome(
        self,
        reason: EndReason,
        detail: str,
        exit_code: int | None,
        signal: int | None,
        failure: Mapping[str, Any] | None,
    ) -> None:
        """Set how the job ended; ``add_event`` changes the state.

        Parameters
        ----------
        exit_code, signal
            How the program that decides ended; None: not in this way.
        failure
            Exception of that program, as JSON values.
        """
        parsed = None
        if failure:
            try:
                parsed = from_json(Failure, failure)
            except (TypeError, KeyError, ValueError, AttributeError):
                parsed = None
        self.set_record(
            reason=reason,
            detail=one_sentence(detail),
            exit_code=exit_code,
            signal=signal,
            failure=parsed,
        )

    def summarize(self) -> None:
        """Set ``resources["used"]`` over all tasks, warnings on unsaved files, and hints."""
        with self._lock:
            tasks = self._record.tasks
            peak = sum(task.memory_peak or 0 for task in tasks)
            cpu = sum(task.cpu_seconds or 0 for task in tasks)
        self.set_used(memory_peak=round(peak, 1), cpu_seconds=round(cpu, 1), tasks=len(tasks))
        saved = list(self._saved.values())
        files, size = sum(one[0] for one in saved), sum(one[1] for one in saved)
        if files:
            self.set_used(saved_files=files, saved_bytes=size)
        for sentence in self._unsaved_sentences():
            self.warn(sentence)
        self.set_record(hints=job_hints(self._record, self._hints))

    def _unsaved_sentences(self) -> list[str]:
        """Return sentences on files that were not saved: at most twenty, then a count.

        A file that several tasks wrote under one name gives one sentence, with its total size.
        """
        written: dict[str, list[tuple[str, int]]] = {}
        for name, found in sorted(self._unsaved.items()):
            for path, size in found["files"]:
                written.setdefault(path, []).append((name, size))
        count = sum(found["count"] for found in self._unsaved.values())
        size = sum(found["size"] for found in self._unsaved.values())
        sentences = []
        for path, tasks in list(written.items())[:MAX_UNSAVED]:
            count, total = count - len(tasks), sum(size for _, size in tasks)
            size -= total
            names = [name for name, _ in tasks]
            others = len(names) - _NAMED_TASKS
            writers = ", ".join(names[:_NAMED_TASKS]) + (
                _(" and {others} more").format(others=others) if others > 0 else ""
            )
            one = {"files": [(path, total)], "count": 1, "size": total}
            sentences += unsaved_sentences(one, writers)
        return sentences + unsaved_sentences({"files": [], "count": count, "size": size})


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
