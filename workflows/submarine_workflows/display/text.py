"""Render a workflow or run as text, and provide the phrases shared with HTML.

The text contains no control characters; the phrases must be escaped by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from submarine_jobs.text import duration, printable
from submarine_runtime.translation import _, ngettext
from submarine_workflows.display.drawing import COLOURS, MAX_DRAWN, SIGNS, columns, words_of
from submarine_workflows.display.states import Caption, NextCommand, NodeState, RunState
from submarine_workflows.model import Node, Workflow


def workflow_text(workflow: Workflow, caption: Caption) -> str:
    """Return a workflow that is not running."""
    head = f"{workflow.name}: {number_of_nodes(workflow)}"
    when = schedule_words(workflow, caption.upcoming)
    return _text([f"{head}{f'; {when}' if when else ''}.", *_lines(workflow, None), *caption.lines])


def run_text(workflow: Workflow, run: RunState, steps: Sequence[NextCommand], now: float) -> str:
    """Return a run of a workflow at ``now``."""
    took = time_taken(run.started, run.ended, now)
    after = _(" after {took}").format(took=took) if took else ""
    return _text(
        [
            f"{workflow.name}  {run.run}  {run.status}{after}{progress(run, ', ')}",
            *_lines(workflow, run, now),
            *(f"{path}: {detail}" if path else detail for path, detail in failures(run)),
            *_steps(steps),
        ]
    )


def node_words(node: NodeState, now: float) -> str:
    """Return ``running 12 s, try 2``."""
    words = status_words(node.status).lower()
    took = time_taken(node.started, node.ended, now)
    again = _(", try {attempt}").format(attempt=node.attempt + 1) if node.attempt else ""
    return f"{words} {took}{again}" if took else f"{words}{again}"


def status_words(status: str) -> str:
    """Return ``FAILED FINISHING``."""
    return status.replace("_", " ")


def failures(run: RunState) -> Sequence[tuple[str, str]]:
    """Return path and reason of failed nodes, else the reason of the run with an empty path."""
    found = [(path, node.detail) for path, node in run.nodes.items() if node.detail]
    return found[:20] or ([("", run.detail)] if run.detail else [])


def progress(run: RunState, before: str = "") -> str:
    """Return ``2 of 5 nodes`` for an active run."""
    over = sum(node.ended is not None for node in run.nodes.values())
    return (
        _("{before}{over} of {count} nodes").format(before=before, over=over, count=len(run.nodes))
        if run.nodes and run.ended is None
        else ""
    )


def time_taken(started: float | None, ended: float | None, now: float) -> str:
    """Return the duration, ``12 s``, until now if the run is active."""
    if started is None:
        return ""
    return duration(max((ended if ended is not None else now) - started, 0.0))


def number_of_nodes(workflow: Workflow) -> str:
    """Return ``3 nodes``, including nodes of embedded flows."""
    number = sum(1 for _ in workflow.walk())
    return ngettext("{number} node", "{number} nodes", number).format(number=number)


def schedule_words(workflow: Workflow, upcoming: Sequence[datetime]) -> str:
    """Return the schedule and its next time."""
    if not workflow.schedule:
        return ""
    zone = f" {workflow.timezone}" if workflow.timezone else ""
    first = (
        _(", next {upcoming:%a %d %b %H:%M}").format(upcoming=upcoming[0])
        if upcoming
        else _(", no further run")
    )
    return f"{workflow.schedule}{zone}{first}"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(printable(line, 300) for line in lines)


def _lines(workflow: Workflow, run: RunState | None, now: float = 0.0) -> list[str]:
    """Return one line per node."""
    found = []
    for column in columns(workflow.nodes[:MAX_DRAWN]):
        for node in column:
            state = run.nodes.get(node.name) if run else None
            sign = f"{SIGNS.get(state.status, ' ')} " if state else ""
            begun = state is not None and state.status in COLOURS
            does = node_words(state, now) if state and begun else words_of(node)
            found.append(f"  {sign}{node.name:<20} {does}{_after(node)}".rstrip())
    return found


def _after(node: Node) -> str:
    after = (
        _("  after {depends_on}").format(depends_on=", ".join(node.depends_on))
        if node.depends_on
        else ""
    )
    return after + (
        _("  if {condition}").format(condition=node.condition) if node.condition else ""
    )


def _steps(steps: Sequence[NextCommand]) -> list[str]:
    width = max((len(step.command) for step in steps), default=0)
    return [f"  {step.command:<{width}}  {step.purpose}" for step in steps]
