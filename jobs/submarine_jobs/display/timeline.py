"""What happened to a job on its way, as lines: restarts, failures, warnings, waits given up.

Changes of state that went as they should are left out: the phases tell of them. Of a job of one
task only warnings are told: everything else is what its state and its reason say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from submarine_jobs.display.task_rows import many
from submarine_jobs.text import duration
from submarine_runtime.protocol.record import Event, JobRecord
from submarine_runtime.protocol.states import State

#: Lines that are shown; older ones are counted.
NEWEST = 8
#: Kinds of events that are no news to a person, or are told elsewhere.
_QUIET = frozenset({"task", "claimed", "shipped", "verdict", "state", "stopping", "yarn_page"})
#: A warning, and its end.
_TROUBLE = frozenset({"warning", "synced"})
_WORDS = {
    "restart": "restart",
    "task_failed": "failed",
    "gang": "gang",
    "warning": "warning",
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
    """The newest moments in order, and how many older ones were left out."""
    found: list[TimelineEntry] = []
    again = 1
    several = many(record)
    for event in record.events:
        if not _telling(event) or not (several or event.kind in _TROUBLE):
            continue
        moment = _moment(event, record.created)
        if found and moment[1:] == (found[-1].word, found[-1].sentence.removesuffix(_again(again))):
            again += 1
            found[-1] = moment._replace(sentence=moment.sentence + _again(again))
        else:
            again = 1
            found.append(moment)
    return found[-limit:], max(0, len(found) - limit)


def _again(number: int) -> str:
    return "" if number == 1 else f" ({number} times)"


def _telling(event: Event) -> bool:
    if event.state is not None:
        return event.state is State.RESTARTING and bool(event.detail)
    # A gang's start is told by the phases, and by the restart that it follows.
    starts = event.kind == "gang" and event.data.get("epoch") is not None
    return event.kind not in _QUIET and bool(event.detail) and not starts


def _moment(event: Event, created: float | None) -> TimelineEntry:
    after = None if created is None else max(event.time - created, 0.0)
    word = "restart" if event.state is State.RESTARTING else _WORDS.get(event.kind, event.kind)
    told = event.detail
    if event.task and event.task not in told:
        told = f"{event.task}: {told}"
    return TimelineEntry(after, word, told)


def lines(moments: Sequence[TimelineEntry], older: int) -> list[str]:
    """The same as text."""
    first = [f"... {older} earlier"] if older else []
    return first + [f"{m.when} {m.word}: {m.sentence}".strip() for m in moments]
