"""Render a workflow or run as script-free HTML: a card with an SVG graph and tables.

Text of files and runs is escaped here. ``text`` provides the texts, ``drawing`` the graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from submarine_jobs.text import escape_html, escape_html_line, timestamp, web_link
from submarine_runtime.translation import _
from submarine_workflows.display.drawing import COLOURS, MAX_DRAWN, MAX_EDGES, as_svg
from submarine_workflows.display.states import Caption, NextCommand, RunState
from submarine_workflows.display.text import (
    failures,
    node_words,
    number_of_nodes,
    progress,
    schedule_words,
    status_words,
    time_taken,
)
from submarine_workflows.model import Workflow

_CARD = (
    "border:1px solid rgba(127,127,127,.35);border-left:4px solid {colour};border-radius:6px;"
    "padding:10px 14px;margin:4px 0;max-width:1100px;font-size:13px;line-height:1.5;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
)
_BADGE = (
    "background-color:{colour};color:#ffffff;border-radius:10px;padding:1px 9px;font-size:11px;"
    "letter-spacing:.03em"
)
_QUIET = "opacity:.72"
_NEUTRAL = "#6b7280"
_CODE = '<code style="background:none;padding:0">'
#: Larger graphs scroll: 200 parallel nodes are 12,000 pixels high.
_GRAPH = "overflow:auto;max-height:720px;margin:8px 0 4px 0"
_TABLE = "border:none;border-collapse:collapse;margin:2px 0;font-size:12px"
_CELL = "text-align:left;padding:1px 14px 1px 0;border:none;background:none"


def workflow_html(workflow: Workflow, caption: Caption) -> str:
    """Return a workflow that is not running."""
    about = (number_of_nodes(workflow), schedule_words(workflow, caption.upcoming))
    quiet = f'<span style="{_QUIET}">{escape_html_line("; ".join(filter(None, about)))}</span>'
    head = f"<div>{_title(workflow)} &nbsp;{quiet}</div>"
    return _card(_NEUTRAL, [head, _graph(workflow, None, 0.0), _caption_lines(caption.lines)])


def run_html(workflow: Workflow, run: RunState, steps: Sequence[NextCommand], now: float) -> str:
    """Return a run of a workflow at ``now``."""
    colour = COLOURS.get(run.status, _NEUTRAL)
    style, words = _BADGE.format(colour=colour), escape_html_line(status_words(run.status), 30)
    badge = f'<strong style="{style}">{words}</strong>'
    about = (time_taken(run.started, run.ended, now), progress(run))
    as_of = "" if run.ended else _(" &nbsp;as of {now}").format(now=timestamp(now))
    head = (
        f"<div>{_title(workflow)} &nbsp;{badge} "
        f'<span style="{_QUIET}">{escape_html_line(", ".join(filter(None, about)))}{as_of}'
        f"</span> &nbsp;{_code(run.run)}</div>"
    )
    graph = _graph(workflow, run, now)
    return _card(colour, [head, graph, _table(failures(run)), _steps(steps)])


def _title(workflow: Workflow) -> str:
    return f'<strong style="font-size:15px">{escape_html_line(workflow.name, 100)}</strong>'


def _card(colour: str, parts: Sequence[str]) -> str:
    inner = "\n".join(part for part in parts if part)
    style = _CARD.format(colour=colour)
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{style}">\n{inner}\n</div>'


def _caption_lines(lines: Sequence[str]) -> str:
    rows = "".join(f"<div>{_sentence(line)}</div>" for line in lines)
    return f'<div style="font-size:12px;{_QUIET}">{rows}</div>' if rows else ""


def _steps(steps: Sequence[NextCommand]) -> str:
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL}">{_command(step.command)}'
        f'</td><td style="{_CELL}"><span style="{_QUIET}">'
        f"{escape_html_line(step.purpose, 100)}</span></td></tr>"
        for step in steps
    )
    return f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>' if rows else ""


def _sentence(text: str) -> str:
    """Return a sentence with text in backticks as code."""
    return re.sub(r"`([^`]+)`", rf"{_CODE}\1</code>", escape_html_line(text, 400))


def _code(words: str) -> str:
    """Return code without the notebook's background colour."""
    return f"{_CODE}{escape_html_line(words, 300)}</code>"


def _command(words: str) -> str:
    shown = _code(words)
    if (link := web_link(words)) is None:
        return shown
    href = escape_html(link, 2000)
    return f'<a href="{href}" target="_blank" rel="noopener noreferrer">{shown}</a>'


def _graph(workflow: Workflow, run: RunState | None, now: float) -> str:
    states = {name: run.nodes[name].status for name in run.nodes} if run else {}
    begun = run.nodes.items() if run else ()
    words = {name: node_words(node, now) for name, node in begun if node.status in COLOURS}
    more = len(workflow.nodes) - MAX_DRAWN
    many = sum(len(node.depends_on) for node in workflow.nodes) > MAX_EDGES
    note = f"<div>and {more} more nodes</div>" if more > 0 else ""
    note += "<div>Not all dependencies are drawn.</div>" if many else ""
    svg = as_svg(workflow, states, words)
    return f'<div style="{_GRAPH}">{svg}</div>{note}'


def _table(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr style="background:none"><th style="{_CELL}">{escape_html_line(path, 100)}</th>'
        f'<td style="{_CELL}">{_sentence(detail)}</td></tr>'
        for path, detail in rows
    )
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'
