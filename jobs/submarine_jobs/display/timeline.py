"""The timeline of a job: restarts, failures, warnings and expired waits.

Regular changes of state are omitted, because the phases show them. For a job of one task only
warnings are shown; its state and its end reason show the rest. ``EventLines`` returns lines about
new events while a command waits for the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from submarine_jobs.display.sanitized_record import sanitize
from submarine_jobs.display.task_rows import many
from submarine_jobs.text import duration, one_line
from submarine_runtime.protocol import Event, JobRecord, State
from submarine_runtime.translation import _

#: Maximum number of lines; older ones are counted.
NEWEST = 8
#: Kinds of events that are not shown here.
_HIDDEN = frozenset({"task", "claimed", "shipped", "verdict", "state", "stopping", "yarn_page"})
#: A warning, and its end.
_WARNINGS = frozenset({"warning", "synced", "stall", "idle_gpu"})
_WORDS = {
    "restart": "restart",
    "task_failed": "failed",
    "gang": "gang",
    "warning": "warning",
    "stall": "stall",
    "idle_gpu": "idle GPUs",
    "ports": "ports",
    "refused": "refused",
    "coordinator": "coordinator",
    "cancel_requested": "cancel",
    "preempted": "pre-empted",
}


class TimelineEntry(NamedTuple):
    """One line: seconds since the job was submitted (None: unknown), a word, a sentence."""

    after: float | None
    word: str
    sentence: str

    @property
    def when(self) -> str:
        """``+12 s``."""
        return "" if self.after is None else f"+{duration(self.after)}"


def timeline(record: JobRecord, limit: int = NEWEST) -> tuple[list[TimelineEntry], int]:
    """Return the newest entries in order, and the number of omitted older ones."""
    found: list[TimelineEntry] = []
    again = 1
    several = many(record)
    for event in record.events:
        if not _is_shown(event) or not (several or event.kind in _WARNINGS):
            continue
        entry = _entry(event, record.created)
        if found and entry[1:] == (found[-1].word, found[-1].sentence.removesuffix(_again(again))):
            again += 1
            found[-1] = entry._replace(sentence=entry.sentence + _again(again))
        else:
            again = 1
            found.append(entry)
    return found[-limit:], max(0, len(found) - limit)


def _again(number: int) -> str:
    return "" if number == 1 else _(" ({number} times)").format(number=number)


def _is_shown(event: Event) -> bool:
    if event.state is not None:
        return event.state is State.RESTARTING and bool(event.detail)
    # The phases, or the preceding restart, show the start of a gang.
    starts = event.kind == "gang" and event.data.get("epoch") is not None
    return event.kind not in _HIDDEN and bool(event.detail) and not starts


def _entry(event: Event, created: float | None) -> TimelineEntry:
    after = None if created is None else max(event.time - created, 0.0)
    word = "restart" if event.state is State.RESTARTING else _WORDS.get(event.kind, event.kind)
    sentence = event.detail
    if event.task and event.task not in sentence:
        sentence = f"{event.task}: {sentence}"
    return TimelineEntry(after, word, sentence)


def lines(entries: Sequence[TimelineEntry], older: int) -> list[str]:
    """Return the timeline as text."""
    first = [_("... {older} earlier").format(older=older)] if older else []
    return first + [f"{m.when} {m.word}: {m.sentence}".strip() for m in entries]


class EventLines:
    """Returns each restart, failure and warning once."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def new_lines(self, record: JobRecord) -> list[str]:
        """Return lines about the new events of ``record``: the newest, and the number of others."""
        fresh = [e for e in record.events if e.seq > self._shown.get(e.writer, -1)]
        for event in fresh:
            self._shown[event.writer] = max(event.seq, self._shown.get(event.writer, -1))
        if not fresh:
            return []
        sanitized = sanitize(replace(record, events=fresh))
        entries, older = timeline(sanitized)
        first = [_("... {older} earlier events").format(older=older)] if older else []
        return first + [one_line(f"{m.word}: {m.sentence}", 300) for m in entries]
