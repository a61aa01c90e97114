"""Code that a note's kernel executes at its start: format data frames as Zeppelin tables.

The kernel may run in any environment, so this code only uses ipykernel and its dependencies.
``kernel`` sends the text of this file and sets ``ROWS``, the maximum number of rows in
a table, and ``TABLE``, the MIME type of one.
"""

# mypy: ignore-errors

from __future__ import annotations

CELL = 1000


def _cell(value):
    text = str(value)[:CELL]
    for sign in "\t\r\n":
        text = text.replace(sign, " ")
    # Zeppelin interprets a cell that starts with % as a display directive.
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
    # cost: names of a module stay in the note's namespace.
    from IPython import get_ipython
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    class TableFormatter(BaseFormatter):
        """Formats a DataFrame as a Zeppelin table."""

        format_type = Unicode(TABLE)  # noqa: F821
        print_method = ObjectName("_repr_submarine_table_")
        _return_type = dict

    shell = get_ipython()
    formatter = TableFormatter(parent=shell.display_formatter)
    for name, make in (("DataFrame", _table), ("Series", _series)):
        formatter.for_type_by_name("pandas.core." + name.lower().replace("data", ""), name, make)
    formatter.for_type_by_name("pandas", "DataFrame", _table)
    formatter.for_type_by_name("pandas", "Series", _series)
    shell.display_formatter.formatters[TABLE] = formatter  # noqa: F821


def _raise_message_limit():
    """Raise the limit of 1,000 waiting messages, beyond which output is lost."""
    # cost: names of a module stay in the note's namespace.
    from IPython import get_ipython
    from zmq import SNDHWM

    thread = getattr(getattr(get_ipython(), "kernel", None), "iopub_thread", None)
    if thread is not None:
        thread.schedule(lambda: thread.socket.setsockopt(SNDHWM, 20_000))


_install()
_raise_message_limit()
