"""Format a job as plain text, for terminals, logs and front ends without HTML."""

from __future__ import annotations

from collections.abc import Mapping

from submarine_jobs.display import status, summary, task_rows, task_table, timeline
from submarine_jobs.display.failure import failure_text
from submarine_jobs.display.sanitized_record import sanitize_view
from submarine_jobs.model import JobView
from submarine_jobs.text import ansi, duration, one_line, printable
from submarine_runtime.translation import _

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
    """Return about forty lines at most, without colours or escape sequences.

    Parameters
    ----------
    now
        Time of the view in seconds since the epoch; the default is the current time.
    command
        The prefix of verbs, ``submarine`` or ``%submarine``.
    result
        Returned values by name, as short texts.
    """
    view = sanitize_view(view)
    record = view.record
    lines = [f"{headline(view, now)}", f"  {one_line(status.sentence(view))}"]
    if step := status.next_step(view):
        lines.append(f"  {one_line(step)}")
    if (done := summary.progress(record)) is not None and not record.state.ended:
        filled = round(done * _BAR)
        lines.append(f"  [{'#' * filled}{'-' * (_BAR - filled)}] {done:.0%}")
    if task_rows.many(record):
        table = task_table.text_lines(record, summary.now_of(view, now))
        lines += [f"  {line}" for line in table]
    lines += [f"  {label}: {one_line(value)}" for label, value in summary.facts(view, now)]
    if times := format_phases(view, now):
        lines.append(_("  Phases: {phases}").format(phases=times))
    for name, value in list((result or {}).items())[:20]:
        lines.append(
            _("  Returned {name}: {value}").format(
                name=one_line(name, 80), value=one_line(value, 200)
            )
        )
    for label, url in list(record.links.items())[:8]:
        lines.append(f"  {one_line(label, 80)}: {one_line(url, 300)}")
    lines += [f"  {label}: {one_line(words)}" for label, words in summary.notes(view)]
    entries = timeline.lines(*timeline.timeline(record))
    lines += [f"  {one_line(line, 300)}" for line in entries]
    if record.failure is not None:
        if task := summary.failing(view):
            lines.append(_("  In {task}:").format(task=one_line(task, 60)))
        lines += [f"  {line}" for line in failure_text(record.failure).split("\n")]
    if tail := ansi.to_text(view.tail, lines=LOG_LINES, width=_WIDTH):
        head = _("Log of {task}:") if view.task else _("Log:")
        head = head.format(task=one_line(view.task, 60))
        lines += [f"  {head}", *(f"  | {line}" for line in tail.split("\n"))]
    if not record.state.ended:
        lines.append(
            _("  Cancel it with: {command} cancel {job}").format(
                command=command, job=printable(record.job_id, 100)
            )
        )
    return "\n".join(lines)


def headline(view: JobView, now: float | None = None) -> str:
    """Return one line: name, id, state and duration."""
    record = view.record
    took = summary.format_elapsed(view, now)
    after = _(" after {took}").format(took=took) if took else ""
    return (
        f"{one_line(record.name, 100)}  {one_line(record.job_id, 100)}  {record.state.value}{after}"
    )


def format_phases(view: JobView, now: float | None = None) -> str:
    """Return the phases: ``upload 0.4 s, queue 2.1 s, run 31 s so far``."""
    return ", ".join(
        f"{one_line(phase.name, 40)} "
        + (_("{duration} so far") if phase.open else "{duration}").format(
            duration=duration(phase.seconds)
        )
        for phase in summary.phases(view, now)
    )
