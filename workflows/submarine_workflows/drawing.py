"""A workflow as a picture: script-free SVG for a notebook, lines of text for a terminal.

Columns are steps: a node stands one to the right of the last node that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from submarine_workflows.workflow import Kind, Node, Workflow

MAX_DRAWN = 300
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 150, 38, 56, 18, 12
_LONGEST = 20
_WORDS: dict[Kind, Callable[[Node], str]] = {
    Kind.NOTEBOOK: lambda node: node.notebook,
    Kind.CELLS: lambda node: "cells " + ", ".join(node.cells),
    Kind.COMMAND: lambda node: node.config.get("command", ""),
    Kind.NOOP: lambda node: "nothing",
    Kind.FLOW: lambda node: f"flow of {len(node.nodes)}",
    Kind.OTHER: lambda node: node.type,
}
#: Colour of a node's edge by its state; others have a neutral one.
_COLOURS = {
    "SUCCEEDED": "#2e7d32",
    "FAILED": "#c62828",
    "RUNNING": "#1565c0",
    "WAITING": "#8d6e00",
    "CANCELLED": "#6d4c41",
}


def columns(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by the step in which they may start at the earliest; of a graph without cycles."""
    known = {node.name: node for node in nodes}
    waits = {name: {n for n in node.depends_on if n in known} for name, node in known.items()}
    found: list[list[Node]] = []
    done: set[str] = set()
    while waits:
        ready = [name for name, others in waits.items() if others <= done] or list(waits)
        found.append([known[name] for name in ready])
        done.update(ready)
        for name in ready:
            del waits[name]
    return found


def as_text(workflow: Workflow) -> str:
    """One line a node, in an order in which they may run."""
    lines = []
    for column in columns(workflow.nodes):
        for node in column:
            after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
            when = f"  if {node.condition}" if node.condition else ""
            lines.append(f"{node.name:<20} {_WORDS[node.kind](node)}{after}{when}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True)
class _Box:
    x: int
    y: int


def as_svg(workflow: Workflow, states: Mapping[str, str] | None = None) -> str:
    """The graph, in the page's own colour of text; states are told in words too.

    Parameters
    ----------
    states
        Node -> its state, for a run that is shown.
    """
    steps = columns(workflow.nodes[:MAX_DRAWN])
    boxes = {
        node.name: _Box(_MARGIN + across * (_WIDTH + _ACROSS), _MARGIN + down * (_HEIGHT + _DOWN))
        for across, column in enumerate(steps)
        for down, node in enumerate(column)
    }
    width = 2 * _MARGIN + len(steps) * (_WIDTH + _ACROSS) - _ACROSS
    height = 2 * _MARGIN + max((len(c) for c in steps), default=1) * (_HEIGHT + _DOWN) - _DOWN
    parts = [
        _edge(boxes[name], boxes[node.name])
        for column in steps
        for node in column
        for name in node.depends_on
        if name in boxes
    ]
    parts += [
        _box(node, boxes[node.name], (states or {}).get(node.name, ""))
        for column in steps
        for node in column
    ]
    label = escape(f"Workflow {workflow.name}: {len(workflow.nodes)} nodes", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="max-width:100%;height:auto;font:13px sans-serif">{"".join(parts)}</svg>'
    )


def _edge(start: _Box, end: _Box) -> str:
    x1, y1 = start.x + _WIDTH, start.y + _HEIGHT // 2
    x2, y2 = end.x, end.y + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return (
        f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2 - 6} {y2} m0 -4 l6 4 l-6 4" '
        'fill="none" stroke="currentColor" stroke-opacity="0.55"/>'
    )


def _box(node: Node, box: _Box, state: str) -> str:
    words = _WORDS[node.kind](node)
    told = f"{node.name}: {words}" + (f" ({state})" if state else "")
    colour = _COLOURS.get(state, "currentColor")
    dashes = ' stroke-dasharray="5 3"' if node.condition else ""
    return (
        f"<g><title>{escape(told)}</title>"
        f'<rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="none" '
        f'stroke="{colour}" stroke-width="{2 if state else 1}"{dashes}/>'
        f'<text x="{box.x + 10}" y="{box.y + 16}" fill="currentColor" font-weight="600">'
        f"{escape(_short(node.name))}</text>"
        f'<text x="{box.x + 10}" y="{box.y + 31}" fill="currentColor" fill-opacity="0.75" '
        f'font-size="11">{escape(_short(state.lower() if state else words))}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
