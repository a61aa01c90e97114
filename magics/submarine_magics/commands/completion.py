"""Tab completion of ``%submarine``, and of the text below ``%%submarine VERB``.

The candidates come from the grammar of the commands and from the verb.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from IPython.core.completer import SimpleCompletion

from submarine_jobs.commands import complete as complete_command
from submarine_jobs.commands.grammar import complete_below
from submarine_jobs.frontends import Frontend
from submarine_jobs.program import cell_verbs, parse_cell

#: The word before the cursor in the text of a cell.
_TYPED_WORD = re.compile(r"[\w.$-]*\Z")
_COLLECT_OPTIONS = ("--file", "--only", "run")


def complete(frontend: Frontend, marks: str, typed: str) -> dict[str, Any]:
    """Return the completions at the cursor in the form of IPython's matcher API.

    Parameters
    ----------
    marks
        ``%`` or ``%%``.
    typed
        The text between ``%submarine`` and the cursor.
    """
    words = words_of(typed)
    return _matches(candidates(frontend, marks, words), words[-1])


def candidates(frontend: Frontend, marks: str, words: list[str]) -> list[str]:
    """Return the words that can replace the last of ``words``."""
    in_cell = marks == "%%" and words[0] in cell_verbs()
    if marks == "%%" and (len(words) < 2 or not (in_cell or words[0] == "run")):
        offered = [*_COLLECT_OPTIONS, *sorted(cell_verbs())]
        return [word for word in offered if word.startswith(words[-1])]
    found = complete_command(words, frontend, in_cell=in_cell)
    # A candidate that needs quotes cannot be inserted as one word.
    return [word for word in found if word.startswith(words[-1]) and shlex.quote(word) == word]


def complete_text(text: str, line: int, column: int) -> dict[str, Any] | None:
    """Return the completions in the text below ``%%submarine VERB``; None elsewhere.

    Parameters
    ----------
    text
        The whole cell.
    line, column
        The cursor, both from 0.
    """
    lines = text.split("\n")[: line + 1]
    below = verb_above("\n".join([*lines[:-1], lines[-1][:column]]))
    if below is None:
        return None
    verb, before = below
    typed = _TYPED_WORD.search(before)
    return _matches(complete_below(verb, before), typed[0] if typed else "")


def _matches(found: list[str], typed: str) -> dict[str, Any]:
    return {
        "completions": [SimpleCompletion(text=word, type="magic") for word in found],
        "matched_fragment": typed,
        "suppress": True,
        "ordered": True,
    }


def verb_above(before: str) -> tuple[str, str] | None:
    """Return the cell's verb and the text below its line, up to the end of ``before``."""
    marked = parse_cell(before)
    words = marked.line.split(maxsplit=1) if marked is not None else []
    if marked is None or not words or words[0] not in cell_verbs():
        return None
    return (words[0], marked.body) if before.count("\n") >= marked.first_line - 1 else None


def words_of(typed: str) -> list[str]:
    """Split the text before the cursor into words; the last one may be empty."""
    try:
        words = shlex.split(typed)
    except ValueError:
        words = typed.split()
    return [*words, ""] if not typed or typed[-1:].isspace() else words
