"""Format the sample of a dataset as a table: text, HTML, and rows for Zeppelin.

Headings and values are untrusted: they are the content of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from submarine_jobs.display.columns import Table
from submarine_jobs.text import escape_html_line, one_line

#: MIME type of a table that Zeppelin shows as its own.
TABLE_MIME_TYPE = "application/vnd.submarine.table+json"
#: Maximum characters of a cell.
_CELL = 80
_STYLE = "text-align:left;padding:2px 12px 2px 0;white-space:nowrap"


def sample_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return the sample as aligned lines and as an HTML table."""
    lines = [[one_line(cell, _CELL) for cell in row] for row in (columns, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    text = "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return Table(text, _html(columns, rows))


def zeppelin_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], head: str
) -> dict[str, Any]:
    """Return the data of ``TABLE_MIME_TYPE``, with ``head`` as the text above the table."""
    lines = ["\t".join(_cell(cell) for cell in row) for row in (columns, *rows)]
    return {"table": "\n".join(lines), "rows": len(rows), "shown": len(rows), "head": head}


def _html(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_STYLE}">{escape_html_line(name, _CELL)}</th>' for name in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_STYLE}">{escape_html_line(cell, _CELL)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    word = one_line(text, _CELL)
    # Zeppelin interprets a cell that starts with % as a display directive.
    return " " + word if word.startswith("%") else word
