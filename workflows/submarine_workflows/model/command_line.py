"""Split and join command lines by Azkaban's rules: no shell and no backslash escapes.

Words are separated by spaces only. Text in ``'`` or ``"`` keeps its spaces; a quote of one kind is
plain text between quotes of the other kind. An empty word cannot be written
(``azkaban.jobExecutor.ProcessJob``, ``partitionCommandLine``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from submarine_runtime.translation import _

#: Words of these characters need no quotes; ``${}`` is quoted, because its value may contain
#: spaces.
_PLAIN = re.compile(r"[^\s'\"$]+")
_RUNS = re.compile(r"'+|[^']+")


def split_command(text: str) -> list[str]:
    """Return the words of a command. An unclosed quote extends to the end."""
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
    """Return one line that ``split_command`` splits into ``words`` again.

    Raises
    ------
    ValueError
        If a word is empty or contains a line break, which a command line cannot express.
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if not word:
        raise ValueError(_("A command for Azkaban cannot contain an empty word."))
    if "\n" in word or "\r" in word:
        raise ValueError(
            _("A command for Azkaban cannot contain a line break: {word!r}.").format(word=word[:60])
        )
    if _PLAIN.fullmatch(word):
        return word
    return "".join(f'"{part}"' if part[0] == "'" else f"'{part}'" for part in _RUNS.findall(word))
