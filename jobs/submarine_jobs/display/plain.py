"""A job as plain text, for terminals, logs and places that show no HTML."""

from __future__ import annotations

from collections.abc import Mapping

from submarine_jobs.display import ansi, summary, task_rows, task_table, timeline
from submarine_jobs.display.failure import failure_text
from submarine_jobs.display.sanitized_record import tame_view
from submarine_jobs.model import JobView
from submarine_jobs.text import duration, one_line, printable

LOG_LINES = 12
_BAR = 24
_WIDTH = 200


def text(
    view: JobView,
    *,
    now: float | None = None,
    command: str = "submarine",
    result: Mapping[str, str] | None = None,
) -> str:
    """The job in at most some forty lines, without colours or escapes.

    Parameters
    ----------
    now
        Moment of the view, seconds since the epoch; the clock by default.
    command
        What the reader types before a verb, ``submarine`` or ``%submarine``.
    result
        Returned values by name, already short text.
    """
    view = tame_view(view)
    record = view.record
    lines = [f"{headline(view, now)}", f"  {one_line(summary.sentence(view))}"]
    if step := summary.next_step(view):
        lines.append(f"  {one_line(step)}")
    if (done := summary.progress(record)) is not None and not record.state.ended:
        filled = round(done * _BAR)
        lines.append(f"  [{'#' * filled}{'-' * (_BAR - filled)}] {done:.0%}")
    if task_rows.many(record):
        table = task_table.text_lines(record, summary.now_of(view, now))
        lines += [f"  {line}" for line in table]
    lines += [f"  {label}: {one_line(value)}" for label, value in summary.facts(view, now)]
    if times := phase_words(view, now):
        lines.append(f"  Phases: {times}")
    for name, value in list((result or {}).items())[:20]:
        lines.append(f"  Returned {one_line(name, 80)}: {one_line(value, 200)}")
    for label, url in list(record.links.items())[:8]:
        lines.append(f"  {one_line(label, 80)}: {one_line(url, 300)}")
    lines += [f"  {label}: {one_line(words)}" for label, words in summary.notes(view)]
    moments = timeline.lines(*timeline.timeline(record))
    lines += [f"  {one_line(line, 300)}" for line in moments]
    if record.failure is not None:
        if whose := summary.failing(view):
            lines.append(f"  In {one_line(whose, 60)}:")
        lines += [f"  {line}" for line in failure_text(record.failure).split("\n")]
    if tail := ansi.to_text(view.tail, lines=LOG_LINES, width=_WIDTH):
        whose = f" of {one_line(view.task, 60)}" if view.task else ""
        lines += [f"  Log{whose}:", *(f"  | {line}" for line in tail.split("\n"))]
    if not record.state.ended:
        lines.append(f"  Cancel it with: {command} cancel {printable(record.job_id, 100)}")
    return "\n".join(lines)


def headline(view: JobView, now: float | None = None) -> str:
    """One line: name, id, state and how long."""
    record = view.record
    took = summary.elapsed_words(view, now)
    after = f" after {took}" if took else ""
    return (
        f"{one_line(record.name, 100)}  {one_line(record.job_id, 100)}  {record.state.value}{after}"
    )


def phase_words(view: JobView, now: float | None = None) -> str:
    """``upload 0.4 s, queue 2.1 s, run 31 s so far``."""
    return ", ".join(
        f"{one_line(phase.name, 40)} {duration(phase.seconds)}{' so far' if phase.open else ''}"
        for phase in summary.phases(view, now)
    )
