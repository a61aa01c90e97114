"""Executed once inside a note's own kernel: tables for Zeppelin. Standard library only.

The kernel may be of any environment, so nothing of ours is imported there; ``kernel`` sends this
file's text, with ``ROWS`` as the number of rows that a table shows.
"""

# mypy: ignore-errors

from __future__ import annotations

TABLE = "application/vnd.submarine.table+json"
CELL = 1000


def _cell(value):
    text = str(value)[:CELL]
    for sign in "\t\r\n":
        text = text.replace(sign, " ")
    # Zeppelin's tables take such a cell for a page.
    return " " + text if text.startswith("%") else text


def _table(frame):
    shown = frame.iloc[:ROWS]  # noqa: F821
    numbered = type(shown.index).__name__ == "RangeIndex"
    names = [] if numbered else [name or "" for name in shown.index.names]
    lines = ["\t".join(_cell(word) for word in [*names, *shown.columns])]
    for row in shown.itertuples(index=not numbered, name=None):
        cells = list(row)
        if not numbered and len(names) > 1:
            cells[:1] = list(cells[0])
        lines.append("\t".join(_cell(value) for value in cells))
    return {"table": "\n".join(lines), "rows": len(frame), "shown": len(shown)}


def _series(series):
    return _table(series.to_frame())


def _install():
    from IPython import get_ipython
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    class TableFormatter(BaseFormatter):
        """The form of a DataFrame that Zeppelin makes a table of."""

        format_type = Unicode(TABLE)
        print_method = ObjectName("_repr_submarine_table_")
        _return_type = dict

    shell = get_ipython()
    formatter = TableFormatter(parent=shell.display_formatter)
    for name, make in (("DataFrame", _table), ("Series", _series)):
        formatter.for_type_by_name("pandas.core." + name.lower().replace("data", ""), name, make)
    formatter.for_type_by_name("pandas", "DataFrame", _table)
    formatter.for_type_by_name("pandas", "Series", _series)
    shell.display_formatter.formatters[TABLE] = formatter


def _keep_all():
    """What is printed faster than it is read waits here, instead of being lost after 1,000."""
    from IPython import get_ipython
    from zmq import SNDHWM

    thread = getattr(getattr(get_ipython(), "kernel", None), "iopub_thread", None)
    if thread is not None:
        thread.schedule(lambda: thread.socket.setsockopt(SNDHWM, 20_000))


_install()
_keep_all()
