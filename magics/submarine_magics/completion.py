"""Tab completion of ``%submarine``: hands the words to the grammar and back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

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
    if marks == "%%" and (len(words) < 2 or words[0] != "run"):
        return [word for word in _COLLECT_OPTIONS if word.startswith(words[-1])]
    from submarine_jobs.commands import complete as complete_words
    from submarine_magics.magics import SubmarineMagics

    found = complete_words(words, SubmarineMagics.of(shell).mouth)
    # What has a quote or a space in it cannot be typed as one word without more ado.
    return [word for word in found if word.startswith(words[-1]) and shlex.quote(word) == word]


def words_of(typed: str) -> list[str]:
    """The words before the cursor; the last, which is being typed, may be empty."""
    try:
        words = shlex.split(typed)
    except ValueError:
        words = typed.split()
    return [*words, ""] if not typed or typed[-1:].isspace() else words
