"""Rows under headings, as text for terminals and HTML for notebooks; values are untrusted text.

The list of jobs, which has states and colours, is ``display.table``.
"""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[str, ...]


def text(columns: Row, rows: Sequence[Row]) -> str:
    """Lines with the columns below each other."""
    everything = [columns, *rows]
    widths = [max(len(row[place]) for row in everything) for place in range(len(columns))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in everything
    )


def html(columns: Row, rows: Sequence[Row]) -> str:
    """A table without a script or a class of ours."""
    from submarine_jobs.display.untrusted import escaped_line

    style = 'style="text-align:left;padding:2px 12px 2px 0;white-space:nowrap"'
    head = "".join(f"<th {style}>{name.capitalize()}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td {style}>{escaped_line(word)}</td>" for word in row) + "</tr>"
        for row in rows
    )
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
