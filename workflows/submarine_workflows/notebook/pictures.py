"""A workflow and a run of it as an output of a notebook: MIME type -> data, in three forms.

``application/vnd.submarine.workflow.v1+json`` for programs, script-free HTML with the graph as SVG,
and text. Asks nobody; what comes from files and runs is made harmless here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from submarine_jobs.display.durations import duration, moment
from submarine_jobs.display.untrusted import escaped, escaped_line, one_line, printable, web_link
from submarine_workflows.drawing import (
    COLOURS,
    MAX_DRAWN,
    MAX_EDGES,
    SIGNS,
    as_svg,
    columns,
    words_of,
)
from submarine_workflows.workflow import Node, Workflow

MIME_TYPE = "application/vnd.submarine.workflow.v1+json"
_CARD = (
    "border:1px solid rgba(127,127,127,.35);border-left:4px solid {colour};border-radius:6px;"
    "padding:10px 14px;margin:4px 0;max-width:1100px;font-size:13px;line-height:1.5;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
)
_BADGE = (
    "background-color:{colour};color:#ffffff;border-radius:10px;padding:1px 9px;font-size:11px;"
    "letter-spacing:.03em"
)
_MAX_NAMED = 50
_QUIET = "opacity:.72"
_NEUTRAL = "#6b7280"
_TABLE = "border:none;border-collapse:collapse;margin:2px 0;font-size:12px"
_CELL = "text-align:left;padding:1px 14px 1px 0;border:none;background:none"


@dataclass(frozen=True)
class NodeState:
    """Where one node of a run stands; times in seconds since the epoch.

    Attributes
    ----------
    detail
        Why it failed, one sentence.
    """

    status: str
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    detail: str = ""


@dataclass(frozen=True)
class RunState:
    """A run at one moment; ``nodes`` by path, ``inner:train``."""

    run: str
    status: str
    started: float | None = None
    ended: float | None = None
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True)
class Caption:
    """What is said beside a workflow.

    Attributes
    ----------
    upcoming
        When its schedule comes true next.
    lines
        Sentences below the graph: where it is kept, what to do next.
    """

    upcoming: Sequence[datetime] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Step:
    """A command that may come next, and what it is good for."""

    command: str
    purpose: str


def of_workflow(workflow: Workflow, caption: Caption) -> dict[str, Any]:
    """A workflow that is not running."""
    count = _count(workflow)
    head = f"{workflow.name}: {count}"
    when = _when(workflow, caption.upcoming)
    text = [f"{head}{f'; {when}' if when else ''}.", *_lines(workflow, None), *caption.lines]
    title = f'<strong style="font-size:15px">{escaped_line(workflow.name, 100)}</strong>'
    quiet = f'<span style="{_QUIET}">{escaped_line("; ".join(filter(None, (count, when))))}</span>'
    parts = [f"<div>{title} &nbsp;{quiet}</div>", _graph(workflow, None, 0.0)]
    return {
        MIME_TYPE: {
            **_plain(workflow),
            "next": [one.isoformat() for one in caption.upcoming],
        },
        "text/html": _card(_NEUTRAL, [*parts, _below(caption.lines)]),
        "text/plain": "\n".join(printable(line, 300) for line in text),
    }


def of_run(
    workflow: Workflow, run: RunState, steps: Sequence[Step] = (), *, now: float | None = None
) -> dict[str, Any]:
    """A run of a workflow, as it is now."""
    now = time.time() if now is None else now
    colour = COLOURS.get(run.status, _NEUTRAL)
    took = _took(run.started, run.ended, now)
    title = f'<strong style="font-size:15px">{escaped_line(workflow.name, 100)}</strong>'
    style, said = _BADGE.format(colour=colour), escaped_line(_said(run.status), 30)
    badge = f'<strong style="{style}">{said}</strong>'
    seen = "" if run.ended else f" &nbsp;as of {moment(now).split()[1]}"
    head = (
        f"<div>{title} &nbsp;{badge} "
        f'<span style="{_QUIET}">{escaped_line(", ".join(filter(None, (took, _done(run)))))}{seen}'
        f"</span> &nbsp;{_code(run.run)}</div>"
    )
    wrong = list(_failures(run))
    parts = [head, _graph(workflow, run, now), _table(wrong)]
    text = [
        f"{workflow.name}  {run.run}  {run.status}{took and f' after {took}'}{_done(run, ', ')}",
        *_lines(workflow, run, now),
        *(f"{path}: {detail}" if path else detail for path, detail in wrong),
        *_steps_text(steps),
    ]
    return {
        MIME_TYPE: {**_plain(workflow, run), "time": now},
        "text/html": _card(colour, [*parts, _steps(steps)]),
        "text/plain": "\n".join(printable(line, 300) for line in text),
    }


def _card(colour: str, parts: Sequence[str]) -> str:
    inner = "\n".join(part for part in parts if part)
    style = _CARD.format(colour=colour)
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{style}">\n{inner}\n</div>'


def _below(lines: Sequence[str]) -> str:
    told = "".join(f"<div>{escaped_line(line, 400)}</div>" for line in lines)
    return f'<div style="font-size:12px;{_QUIET}">{told}</div>' if told else ""


def _steps(steps: Sequence[Step]) -> str:
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL}">{_command(step.command)}'
        f'</td><td style="{_CELL}"><span style="{_QUIET}">'
        f"{escaped_line(step.purpose, 100)}</span></td></tr>"
        for step in steps
    )
    return f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>' if rows else ""


def _code(words: str) -> str:
    """Without the ground that notebooks put behind code."""
    return f'<code style="background:none;padding:0">{escaped_line(words, 300)}</code>'


def _command(words: str) -> str:
    shown = _code(words)
    if (link := web_link(words)) is None:
        return shown
    href = escaped(link, 2000)
    return f'<a href="{href}" target="_blank" rel="noopener noreferrer">{shown}</a>'


def _steps_text(steps: Sequence[Step]) -> list[str]:
    width = max((len(step.command) for step in steps), default=0)
    return [f"  {step.command:<{width}}  {step.purpose}" for step in steps]


def _graph(workflow: Workflow, run: RunState | None, now: float) -> str:
    states = {name: run.nodes[name].status for name in run.nodes} if run else {}
    begun = run.nodes.items() if run else ()
    words = {name: _words(node, now) for name, node in begun if node.status in COLOURS}
    more = len(workflow.nodes) - MAX_DRAWN
    many = sum(len(node.depends_on) for node in workflow.nodes) > MAX_EDGES
    note = f"<div>and {more} nodes more</div>" if more > 0 else ""
    note += "<div>Not all dependencies are drawn.</div>" if many else ""
    svg = as_svg(workflow, states, words)
    return f'<div style="overflow-x:auto;margin:8px 0 4px 0">{svg}</div>{note}'


def _words(node: NodeState, now: float) -> str:
    """``running 12 s, 2nd try``."""
    said = _said(node.status).lower()
    took = _took(node.started, node.ended, now)
    again = f", try {node.attempt + 1}" if node.attempt else ""
    return f"{said} {took}{again}" if took else f"{said}{again}"


def _said(status: str) -> str:
    return status.replace("_", " ")


def _lines(workflow: Workflow, run: RunState | None, now: float = 0.0) -> list[str]:
    """One line a node."""
    found = []
    for column in columns(workflow.nodes[:MAX_DRAWN]):
        for node in column:
            state = run.nodes.get(node.name) if run else None
            sign = f"{SIGNS.get(state.status, ' ')} " if state else ""
            begun = state is not None and state.status in COLOURS
            does = _words(state, now) if state and begun else words_of(node)
            found.append(f"  {sign}{node.name:<20} {does}{_after(node)}".rstrip())
    return found


def _after(node: Node) -> str:
    after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
    return after + (f"  if {node.condition}" if node.condition else "")


def _failures(run: RunState) -> Sequence[tuple[str, str]]:
    found = [(path, node.detail) for path, node in run.nodes.items() if node.detail]
    return found[:20] or ([("", run.detail)] if run.detail else [])


def _table(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr style="background:none"><th style="{_CELL}">{escaped_line(path, 100)}</th>'
        f'<td style="{_CELL}">{escaped_line(detail, 400)}</td></tr>'
        for path, detail in rows
    )
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'


def _done(run: RunState, before: str = "") -> str:
    over = sum(node.ended is not None for node in run.nodes.values())
    return f"{before}{over} of {len(run.nodes)} nodes" if run.nodes and run.ended is None else ""


def _took(started: float | None, ended: float | None, now: float) -> str:
    if started is None:
        return ""
    return duration(max((ended if ended is not None else now) - started, 0.0))


def _count(workflow: Workflow) -> str:
    number = sum(1 for _ in workflow.walk())
    return f"{number} node{'s' if number != 1 else ''}"


def _when(workflow: Workflow, upcoming: Sequence[datetime]) -> str:
    if not workflow.schedule:
        return ""
    zone = f" {workflow.timezone}" if workflow.timezone else ""
    first = f", next {upcoming[0]:%a %d %b %H:%M}" if upcoming else ", never again"
    return f"{workflow.schedule}{zone}{first}"


def _plain(workflow: Workflow, run: RunState | None = None) -> dict[str, Any]:
    """The JSON form."""
    nodes = []
    for node in workflow.nodes[:MAX_DRAWN]:
        one: dict[str, Any] = {
            "name": one_line(node.name, 200),
            "kind": node.kind.value,
            "does": one_line(words_of(node), 200),
            "dependsOn": [one_line(name, 200) for name in node.depends_on[:_MAX_NAMED]],
            "condition": one_line(node.condition, 500),
        }
        state = run.nodes.get(node.name) if run else None
        if state is not None:
            one |= {
                "status": state.status,
                "started": state.started,
                "ended": state.ended,
                "attempt": state.attempt,
                "detail": one_line(state.detail, 400),
            }
        nodes.append(one)
    found: dict[str, Any] = {
        "version": 1,
        "name": one_line(workflow.name, 200),
        "schedule": one_line(workflow.schedule, 200),
        "timezone": one_line(workflow.timezone, 100),
        "nodes": nodes,
    }
    if run is not None:
        found |= {
            "run": one_line(run.run, 200),
            "status": run.status,
            "started": run.started,
            "ended": run.ended,
        }
    return found
