"""Tab completion of ``%submarine``: hands the words to the grammar and back.

Below ``%%submarine VERB`` it is the verb that knows what may stand there.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: What is typed of the last word in the text of a cell.
_TYPED_WORD = re.compile(r"[\w.$-]*\Z")
_COLLECT_OPTIONS = ("--file", "--only", "run")


def complete(shell: InteractiveShell, marks: str, typed: str) -> dict[str, Any]:
    """What may follow the cursor, as IPython's matcher API wants it.

    Parameters
    ----------
    marks
        ``%`` or ``%%``.
    typed
        What stands between ``%submarine`` and the cursor.
    """
    from IPython.core.completer import SimpleCompletion

    words = words_of(typed)
    found = candidates(shell, marks, words)
    return {
        "completions": [SimpleCompletion(text=word, type="magic") for word in found],
        "matched_fragment": words[-1],
        "suppress": True,
        "ordered": True,
    }


def candidates(shell: InteractiveShell, marks: str, words: list[str]) -> list[str]:
    """The words that may stand in the place of the last of ``words``."""
    from submarine_jobs.program import cell_verbs

    in_cell = marks == "%%" and words[0] in cell_verbs()
    if marks == "%%" and (len(words) < 2 or not (in_cell or words[0] == "run")):
        offered = [*_COLLECT_OPTIONS, *sorted(cell_verbs())]
        return [word for word in offered if word.startswith(words[-1])]
    from submarine_jobs.commands import complete as complete_words
    from submarine_magics.magics import SubmarineMagics

    found = complete_words(words, SubmarineMagics.of(shell).frontend, in_cell=in_cell)
    # What has a quote or a space in it cannot be typed as one word without more ado.
    return [word for word in found if word.startswith(words[-1]) and shlex.quote(word) == word]


def complete_text(text: str, line: int, column: int) -> dict[str, Any] | None:
    """What may follow the cursor in the text below ``%%submarine VERB``; None elsewhere.

    Parameters
    ----------
    text
        The whole cell.
    line, column
        The cursor, both from 0.
    """
    from IPython.core.completer import SimpleCompletion

    from submarine_jobs.commands.grammar import complete_below

    lines = text.split("\n")[: line + 1]
    below = verb_above("\n".join([*lines[:-1], lines[-1][:column]]))
    if below is None:
        return None
    verb, before = below
    found = complete_below(verb, before)
    typed = _TYPED_WORD.search(before)
    return {
        "completions": [SimpleCompletion(text=word, type="magic") for word in found],
        "matched_fragment": typed[0] if typed else "",
        "suppress": True,
        "ordered": True,
    }


def verb_above(before: str) -> tuple[str, str] | None:
    """The verb of ``submarine.cells`` below whose line ``before`` ends, and the text from there."""
    from submarine_jobs.program import cell_verbs, parse_cell

    marked = parse_cell(before)
    words = marked.line.split(maxsplit=1) if marked is not None else []
    if marked is None or not words or words[0] not in cell_verbs():
        return None
    return (words[0], marked.body) if before.count("\n") >= marked.first_line - 1 else None


def words_of(typed: str) -> list[str]:
    """The words before the cursor; the last, which is being typed, may be empty."""
    try:
        words = shlex.split(typed)
    except ValueError:
        words = typed.split()
    return [*words, ""] if not typed or typed[-1:].isspace() else words
