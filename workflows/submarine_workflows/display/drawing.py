"""Draw a workflow as script-free SVG for a notebook, or as lines of text for a terminal.

The drawing uses the text colour of the page with transparent fills, so it is readable on light and
dark pages. Each state has a word and a sign besides its colour. ``layout`` computes the positions.
Jupyter removes the SVG of untrusted notebooks from the HTML and keeps its text; the separators
between the texts, which SVG does not render, turn that text into a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from submarine_jobs.text import escape_html_line
from submarine_runtime.translation import _
from submarine_workflows.display.layout import HEIGHT, WIDTH, Point, columns, compute_layout
from submarine_workflows.model import Kind, Node, Workflow

__all__ = ["COLOURS", "SIGNS", "as_svg", "as_text", "columns", "words_of"]

MAX_DRAWN = 300
#: Limit of drawn edges: more exceed the size limit of an output and are not readable.
MAX_EDGES = 1500
_LONGEST_NAME, _LONGEST = 19, 25
_KIND_WORDS: dict[Kind, Callable[[Node], str]] = {
    Kind.NOTEBOOK: lambda node: node.notebook,
    Kind.CELLS: lambda node: "cells " + ", ".join(node.cells),
    Kind.COMMAND: lambda node: node.config.get("command", ""),
    Kind.NOOP: lambda node: (
        _("waits for {needs}").format(needs=", ".join(need.url for need in node.needs))
        if node.needs
        else "nothing"
    ),
    Kind.FLOW: lambda node: _("flow of {count}").format(count=len(node.nodes)),
    Kind.OTHER: lambda node: node.type,
}
_SUCCESS, _FAILURE, _ACTIVE, _WAITING, _ENDED = (
    "#1a7f37",
    "#c62828",
    "#0b6bcb",
    "#9a6700",
    "#6b7280",
)
#: Colour by Azkaban status, the same as for jobs. Other statuses use the text colour.
COLOURS = {
    "SUCCEEDED": _SUCCESS,
    "FAILED_SUCCEEDED": _WAITING,
    "FAILED": _FAILURE,
    "FAILED_FINISHING": _FAILURE,
    "EXECUTION_STOPPED": _FAILURE,
    "RUNNING": _ACTIVE,
    "QUEUED": _WAITING,
    "KILLING": _ENDED,
    "KILLED": _ENDED,
    "CANCELLED": _ENDED,
    "SKIPPED": _ENDED,
}
SIGNS = {
    "SUCCEEDED": "\u2713",
    "FAILED_SUCCEEDED": "!",
    "FAILED": "\u2717",
    "FAILED_FINISHING": "\u2717",
    "EXECUTION_STOPPED": "\u2717",
    "RUNNING": "\u25b8",
    "QUEUED": "\u2026",
    "KILLING": "\u25a0",
    "KILLED": "\u25a0",
    "CANCELLED": "\u2013",
    "SKIPPED": "\u2013",
}


def words_of(node: Node) -> str:
    """Return what a node runs, ``features.ipynb``."""
    return _KIND_WORDS[node.kind](node)


def as_text(workflow: Workflow) -> str:
    """Return one line per node, in an order in which they may run."""
    lines = []
    for column in columns(workflow.nodes):
        for node in column:
            after = (
                _("  after {depends_on}").format(depends_on=", ".join(node.depends_on))
                if node.depends_on
                else ""
            )
            when = _("  if {condition}").format(condition=node.condition) if node.condition else ""
            lines.append(f"{node.name:<20} {words_of(node)}{after}{when}".rstrip())
    return "\n".join(lines)


def as_svg(
    workflow: Workflow,
    states: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> str:
    """Return the graph as SVG in the text colour of the page.

    Parameters
    ----------
    states
        Node -> status, for a run.
    words
        Node -> its second line, ``running 12 s``; by default what the node runs.
    """
    nodes = workflow.nodes[:MAX_DRAWN]
    layout = compute_layout(nodes)
    known = {node.name: node for node in nodes}
    states, words = states or {}, words or {}
    parts = [
        _edge(points, states.get(start, ""), conditional=bool(known[end].condition))
        for start, end, points in layout.edges[:MAX_EDGES]
    ]
    parts += [
        _box(known[name], corner, states.get(name, ""), words.get(name, ""))
        for name, corner in layout.corners.items()
    ]
    label = escape_html_line(
        _("Workflow {workflow}: {count} nodes").format(
            workflow=workflow.name, count=len(workflow.nodes)
        )
    )
    width, height = layout.width, layout.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        # Repeated as a style, because the style sheet of a page overrides attributes: Zeppelin sets
        # the size of SVG, and Jupyter shrinks it to the page width, where a large graph is
        # unreadable.
        f'style="width:{width:g}px;height:{height:g}px;max-width:none;'
        "font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif\">"
        f"{''.join(parts)}</svg>"
    )


def _edge(points: Sequence[Point], state: str, *, conditional: bool) -> str:
    x, y = points[0]
    way = [f"M{x:g} {y:g}"]
    for number, (nx, ny) in enumerate(points[1:], 1):
        last = number == len(points) - 1
        nx = nx - 7 if last else nx
        middle = (x + nx) / 2
        way.append(f"C{middle:g} {y:g} {middle:g} {ny:g} {nx:g} {ny:g}" if y != ny else f"H{nx:g}")
        x, y = nx, ny
    colour = COLOURS["SUCCEEDED"] if state == "SUCCEEDED" else "currentColor"
    opacity = ".8" if state == "SUCCEEDED" else ".45"
    dashes = ' stroke-dasharray="5 4"' if conditional else ""
    return (
        f'<path d="{"".join(way)}" fill="none" stroke="{colour}" stroke-opacity="{opacity}" '
        f'stroke-width="1.4"{dashes}/>'
        f'<path d="M{x:g} {y - 4:g}l7 4l-7 4z" fill="{colour}" fill-opacity="{opacity}"/>'
    )


def _box(node: Node, corner: Point, state: str, words: str) -> str:
    x, y = corner
    begun = state.lower().replace("_", " ") if state in COLOURS else ""
    name, line = _shortened(node.name, _LONGEST_NAME), words or begun or words_of(node)
    line = _shortened(line, _LONGEST)
    colour = COLOURS.get(state, "currentColor")
    dashes = ' stroke-dasharray="5 3"' if node.condition or state == "SKIPPED" else ""
    faint = "" if state in COLOURS else ' stroke-opacity=".5"'
    fill = ".12" if state in COLOURS and state != "SKIPPED" else ".04"
    sign = SIGNS.get(state, "")
    return (
        f"<g>{_title(node, name, line)}"
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{colour}" '
        f'fill-opacity="{fill}" stroke="{colour}" stroke-width="{1.5 if state in COLOURS else 1}"'
        f"{faint}{dashes}/>"
        f'<text x="{x + 11:g}" y="{y + 18:g}" fill="currentColor" font-weight="600">'
        f"{escape_html_line(name)}</text>: "
        f'<text x="{x + 11:g}" y="{y + 33:g}" fill="currentColor" fill-opacity=".72" '
        f'font-size="11">{escape_html_line(line)}</text> {_sign(sign, x, y, colour)}</g>; '
    )


def _title(node: Node, name: str, line: str) -> str:
    """Return the tooltip with the text that does not fit into the box."""
    does = words_of(node)
    parts = [] if (name, line) == (node.name, does) else [f"{node.name}: {does}"]
    parts += [_("if {condition}").format(condition=node.condition)] if node.condition else []
    return f"<title>{escape_html_line(', '.join(parts))}</title>. " if parts else ""


def _sign(sign: str, x: float, y: float, colour: str) -> str:
    if not sign:
        return ""
    at = x + WIDTH - 18
    return (
        f'<circle cx="{at + 6:g}" cy="{y + 14:g}" r="8" fill="{colour}"/>'
        f'<text x="{at + 6:g}" y="{y + 18:g}" fill="#fff" font-size="11" font-weight="700" '
        f'text-anchor="middle">{sign}</text>'
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"
