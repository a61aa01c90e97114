r"""Lets the body of a ``%%submarine`` cell run as any other cell does.

IPython hands a cell magic its body as text. Were the magic to execute that text itself, tracebacks,
the value of the last line and the debugger would all see the magic's frames. So the first line of
the cell is rewritten before IPython compiles it: to a call that collects the cell, with the body
left below it, line for line where it was. ``%%submarine --only`` and ``%%submarine run`` keep their
body as text: they do not run it here.
"""

from __future__ import annotations

import re

#: The word that the rewritten first line passes; no verb can be called so.
COLLECT = "%%"
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
