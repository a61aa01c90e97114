"""A command in one line, as Azkaban takes it apart: no shell, no backslash, quotes that vanish.

Only the space separates words; a word in ``'`` or ``"`` keeps its spaces; a quote of one kind is
plain text between quotes of the other. An empty word cannot be said at all
(``azkaban.jobExecutor.ProcessJob``, ``partitionCommandLine``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Words of these alone mean themselves; ``${}`` is quoted, as its value may have spaces.
_PLAIN = re.compile(r"[^\s'\"$]+")
_RUNS = re.compile(r"'+|[^']+")


def split_command(text: str) -> list[str]:
    """The words of a command; a quote that is never closed reaches to the end."""
    words: list[str] = []
    word, quote = "", ""
    for char in text:
        if char == quote:
            quote = ""
        elif char in "'\"" and not quote:
            quote = char
        elif char == " " and not quote:
            words += [word] if word else []
            word = ""
        else:
            word += char
    return [*words, word] if word else words


def join_command(words: Iterable[str]) -> str:
    """One line that is taken apart into ``words`` again.

    Raises
    ------
    ValueError
        If a word is empty or has a line break, which no such line can say.
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if not word:
        raise ValueError("An empty word cannot be part of a command in Azkaban's terms.")
    if "\n" in word or "\r" in word:
        raise ValueError(f"A command in Azkaban's terms has no line break: {word[:60]!r}.")
    if _PLAIN.fullmatch(word):
        return word
    return "".join(f'"{part}"' if part[0] == "'" else f"'{part}'" for part in _RUNS.findall(word))
