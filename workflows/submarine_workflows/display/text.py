"""A workflow and a run of it as lines of text, and the words that text and HTML have in common.

The text has no control characters; words alone are as files and runs have them: who puts them into
another form makes them harmless there. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from submarine_jobs.text import duration, printable
from submarine_workflows.display.drawing import COLOURS, MAX_DRAWN, SIGNS, columns, words_of
from submarine_workflows.display.states import Caption, NodeState, RunState, Step
from submarine_workflows.model import Node, Workflow


def workflow_text(workflow: Workflow, caption: Caption) -> str:
    """A workflow that is not running."""
    head = f"{workflow.name}: {number_of_nodes(workflow)}"
    when = schedule_words(workflow, caption.upcoming)
    return _text([f"{head}{f'; {when}' if when else ''}.", *_lines(workflow, None), *caption.lines])


def run_text(workflow: Workflow, run: RunState, steps: Sequence[Step], now: float) -> str:
    """A run of a workflow at ``now``."""
    took = time_taken(run.started, run.ended, now)
    after = f" after {took}" if took else ""
    return _text(
        [
            f"{workflow.name}  {run.run}  {run.status}{after}{progress(run, ', ')}",
            *_lines(workflow, run, now),
            *(f"{path}: {detail}" if path else detail for path, detail in failures(run)),
            *_steps(steps),
        ]
    )


def node_words(node: NodeState, now: float) -> str:
    """``running 12 s, try 2``."""
    said = status_words(node.status).lower()
    took = time_taken(node.started, node.ended, now)
    again = f", try {node.attempt + 1}" if node.attempt else ""
    return f"{said} {took}{again}" if took else f"{said}{again}"


def status_words(status: str) -> str:
    """``FAILED FINISHING``."""
    return status.replace("_", " ")


def failures(run: RunState) -> Sequence[tuple[str, str]]:
    """Path and reason of the nodes that have one, else that of the run, which has no path."""
    found = [(path, node.detail) for path, node in run.nodes.items() if node.detail]
    return found[:20] or ([("", run.detail)] if run.detail else [])


def progress(run: RunState, before: str = "") -> str:
    """``2 of 5 nodes`` of a run that goes on."""
    over = sum(node.ended is not None for node in run.nodes.values())
    return f"{before}{over} of {len(run.nodes)} nodes" if run.nodes and run.ended is None else ""


def time_taken(started: float | None, ended: float | None, now: float) -> str:
    """``12 s``, so far if it goes on."""
    if started is None:
        return ""
    return duration(max((ended if ended is not None else now) - started, 0.0))


def number_of_nodes(workflow: Workflow) -> str:
    """``3 nodes``, with those of flows within it."""
    number = sum(1 for _ in workflow.walk())
    return f"{number} node{'s' if number != 1 else ''}"


def schedule_words(workflow: Workflow, upcoming: Sequence[datetime]) -> str:
    """Its schedule and when that comes true next."""
    if not workflow.schedule:
        return ""
    zone = f" {workflow.timezone}" if workflow.timezone else ""
    first = f", next {upcoming[0]:%a %d %b %H:%M}" if upcoming else ", never again"
    return f"{workflow.schedule}{zone}{first}"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(printable(line, 300) for line in lines)


def _lines(workflow: Workflow, run: RunState | None, now: float = 0.0) -> list[str]:
    """One line a node."""
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
    after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
    return after + (f"  if {node.condition}" if node.condition else "")


def _steps(steps: Sequence[Step]) -> list[str]:
    width = max((len(step.command) for step in steps), default=0)
    return [f"  {step.command:<{width}}  {step.purpose}" for step in steps]
