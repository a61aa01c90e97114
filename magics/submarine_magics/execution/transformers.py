r"""Lets the body of a ``%%submarine`` cell run as any other cell does.

IPython hands a cell magic its body as text. Were the magic to execute that text itself, tracebacks,
the value of the last line and the debugger would all see the magic's frames. So the first line of
the cell is rewritten before IPython compiles it: to a call that collects the cell, with the body
left below it, line for line where it was. ``%%submarine --only`` and ``%%submarine run`` keep their
body as text: they do not run it here. A cell with the tag ``submarine-only`` becomes a call alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from submarine_jobs.program import parse_cell

if TYPE_CHECKING:
    from submarine_magics.execution.executions import Requested

#: The word that the rewritten first line passes; no verb can be called so.
COLLECT = "%%"
#: The same for a cell that is collected by its tag and does not run here.
COLLECT_ONLY = "%%only"
ONLY_CALL = f"get_ipython().run_line_magic('submarine', {COLLECT_ONLY!r})"
_FIRST_LINE = re.compile(r"[ \t]*%%submarine(?![\w.])(?P<rest>[^\n]*)")
_RUN_OR_ONLY = re.compile(r"\s*(?:run(?:\s|$)|[a-z]|(?:.*\s)?--only(?:\s|=|$))")


def run_body_here(lines: list[str]) -> list[str]:
    """IPython input transformer: rewrite the first line where the body is to run here."""
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


def only_by_tag(lines: list[str], request: Requested | None) -> list[str]:
    """IPython input transformer: a cell with the tag ``submarine-only`` is collected, not run.

    Parameters
    ----------
    request
        The cell that the front end asks to be executed; what else is compiled meanwhile is not it.
    """
    if request is None or not request.tags or not _same_text(lines, request.code):
        return lines
    if parse_cell(request.code) is not None:
        return lines  # its own line has the last word
    marked = parse_cell(request.code, request.tags)
    if marked is None or not marked.line.startswith("--only") or not marked.body.strip():
        return lines
    return [f"{ONLY_CALL}\n"]


def _same_text(lines: list[str], code: str) -> bool:
    """Whether these are the lines of ``code``, whatever IPython took away at their edges."""

    def core(text: str) -> list[str]:
        return [line.strip() for line in text.splitlines() if line.strip()]

    return core("".join(lines)) == core(code)
