"""Tab completion of ``%submarine``: hands the words to the grammar and back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MARK = "%submarine"
_COLLECT_OPTIONS = ("--file", "--only", "run")


def complete(shell: InteractiveShell, event: object) -> list[str]:
    """What may follow the cursor; IPython filters by what is typed already."""
    before = getattr(event, "text_until_cursor", "") or getattr(event, "line", "")
    symbol = str(getattr(event, "symbol", ""))
    head, _, rest = str(before).rpartition(_MARK)
    if not rest[:1].isspace():
        return []
    words = words_of(rest)
    if head.endswith("%") and (len(words) < 2 or words[0] != "run"):
        return list(_COLLECT_OPTIONS)
    from submarine_jobs.commands import complete as complete_words
    from submarine_magics.magics import SubmarineMagics

    found = complete_words(words, SubmarineMagics.of(shell).mouth)
    return [_as_symbol(word, words[-1], symbol) for word in found]


def words_of(text: str) -> list[str]:
    """The words before the cursor; the last, which is being typed, may be empty."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [*words, ""] if not text or text[-1:].isspace() else words


def _as_symbol(word: str, typed: str, symbol: str) -> str:
    """The completion as IPython counts it: without what it does not take for part of the word."""
    if typed.endswith(symbol) and word.startswith(typed):
        return word[len(typed) - len(symbol) :]
    return word
