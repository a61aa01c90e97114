r"""IPython input transformers: rewrite the cells of ``%%submarine`` before IPython compiles them.

IPython passes the body of a cell magic as text. If the magic executed that text itself, tracebacks,
the value of the last line and the debugger would see the frames of the magic. Therefore the first
line of the cell is replaced by a call that collects the cell, and the body stays below it, with the
same line numbers. ``%%submarine --only`` and ``%%submarine run`` keep their body as text, because
it does not run in the kernel. A cell with the tag ``submarine-only`` is replaced by a call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from submarine_jobs.program import parse_cell

if TYPE_CHECKING:
    from submarine_magics.execution.executions import ExecuteRequest

#: Argument of the call that replaces the first line; not the name of a verb.
COLLECT = "%%"
#: The same for a cell that is collected by its tag and does not run in the kernel.
COLLECT_ONLY = "%%only"
#: Prefix of the argument that asks for help; not the name of a verb.
HELP_REQUEST = "%%? "
ONLY_CALL = f"get_ipython().run_line_magic('submarine', {COLLECT_ONLY!r})"
_FIRST_LINE = re.compile(r"[ \t]*%%submarine(?![\w.])(?P<rest>[^\n]*)")
_RUN_OR_ONLY = re.compile(r"\s*(?:run(?:\s|$)|[a-z]|(?:.*\s)?--only(?:\s|=|$))")
_QUESTION = re.compile(r"\A\s*(%%?submarine(?![\w.])[^\n?]*?)\s*\?{1,2}\s*\Z")


def rewrite_first_line(lines: list[str]) -> list[str]:
    """Replace the line ``%%submarine`` of a cell if its body runs in the kernel."""
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        match = _FIRST_LINE.match(line)
        body_follows = any(rest.strip() for rest in lines[number + 1 :])
        if match is None or _RUN_OR_ONLY.match(match["rest"]) or not body_follows:
            return lines
        call = f"get_ipython().run_line_magic('submarine', {COLLECT!r})\n"
        return [*lines[:number], call, *lines[number + 1 :]]
    return lines


def rewrite_tagged_cell(lines: list[str], request: ExecuteRequest | None) -> list[str]:
    """Replace a cell with the tag ``submarine-only``: it is collected and does not run.

    Parameters
    ----------
    request
        The front end's request. Other code that is compiled during the request is not changed.
    """
    if request is None or not request.tags or not _same_text(lines, request.code):
        return lines
    if parse_cell(request.code) is not None:
        return lines  # The line %%submarine takes precedence over the tag.
    marked = parse_cell(request.code, request.tags)
    if marked is None or not marked.line.startswith("--only") or not marked.body.strip():
        return lines
    return [f"{ONLY_CALL}\n"]


def rewrite_question(lines: list[str]) -> list[str]:
    """Replace a cell such as ``%submarine run --gpu?`` by a call that shows help."""
    question = _QUESTION.match("".join(lines))
    if question is None:
        return lines
    return [f"get_ipython().run_line_magic('submarine', {HELP_REQUEST + question[1]!r})\n"]


def _same_text(lines: list[str], code: str) -> bool:
    """Whether these are the lines of ``code``, apart from the white space that IPython strips."""

    def core(text: str) -> list[str]:
        return [line.strip() for line in text.splitlines() if line.strip()]

    return core("".join(lines)) == core(code)
