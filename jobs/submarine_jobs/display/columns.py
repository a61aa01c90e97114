"""Format rows as a table, as text for terminals and HTML for notebooks; values are untrusted.

``task_table`` formats the tasks of a job, which have bars and notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from submarine_jobs.text import escape_html_line
from submarine_runtime.protocol import State
from submarine_runtime.translation import _

Row = tuple[str, ...]
#: Readable on light and dark pages.
STATE_COLOURS = {
    State.SUBMITTING: "#6b7280",
    State.PENDING: "#9a6700",
    State.STARTING: "#7c5cc4",
    State.RUNNING: "#0b6bcb",
    State.RESTARTING: "#9a6700",
    State.FINISHING: "#0b7a75",
    State.SUCCEEDED: "#1a7f37",
    State.FAILED: "#c62828",
    State.CANCELLED: "#6b7280",
    State.LOST: "#9a6700",
}
_CELL = "text-align:left;padding:2px 12px 2px 0;white-space:nowrap"


class Table(NamedTuple):
    """The two forms of a table."""

    text: str
    html: str


def text(columns: Row, rows: Sequence[Row], note: str = "") -> str:
    """Return aligned lines, with ``note`` as the last line; headings are translated."""
    lines_of_cells = [tuple(map(_, columns)), *rows]
    widths = [max(len(row[place]) for row in lines_of_cells) for place in range(len(columns))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in lines_of_cells
    ]
    return "\n".join([*lines, note] if note else lines)


def html(
    columns: Row,
    rows: Sequence[Row],
    note: str = "",
    *,
    dots: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return an HTML table with ``note`` below it; it uses no own CSS classes.

    Parameters
    ----------
    dots
        Column -> colours of the dots before the values of its rows.
    """
    head = "".join(f'<th style="{_CELL}">{_(name).capitalize()}</th>' for name in columns)
    colours = [(dots or {}).get(name) for name in columns]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL}">{_dot(of[number]) if of else ""}{escape_html_line(word)}</td>'
            for word, of in zip(row, colours, strict=True)
        )
        + "</tr>"
        for number, row in enumerate(rows)
    )
    after = f"<p>{escape_html_line(note)}</p>" if note else ""
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"
    )


def _dot(colour: str) -> str:
    return f'<span style="color:{colour}">●</span> '
