"""Commands of a node as lines for a shell; ``${name}`` becomes a variable, never more shell.

Does not know where the variables' values come from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping

from submarine_jobs.errors import UsageError

#: A parameter, not an output of another node, which has a colon.
PARAMETER = re.compile(r"\$\{([^{}:$]+)\}")
_DEEPEST = 20


def expand(text: str, values: Mapping[str, str], keep: Callable[[str], bool]) -> str:
    """Put values in the place of ``${name}``, those within values too.

    Parameters
    ----------
    keep
        Whether a name stays as it is, for the place that runs the command.

    Raises
    ------
    UsageError
        If values name each other in a circle, or a name has no value and does not stay.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1).strip()
        if keep(name):
            return f"${{{name}}}"
        if name not in values:
            raise UsageError(
                f"`${{{name}}}` has no value.", f"Write `{name}: ...` under `config:` of the flow."
            )
        return values[name]

    for _ in range(_DEEPEST):
        found = PARAMETER.sub(value_of, text)
        if found == text:
            return text
        text = found
    raise UsageError(f"The parameters in `{text[:80]}` name each other in a circle.")


def line_of(words: Iterable[str], variable: Callable[[str], str]) -> str:
    """One line of shell that runs ``words``; each ``${name}`` is ``"$VARIABLE"`` in it."""
    return " ".join(word_of(word, variable) for word in words)


def word_of(word: str, variable: Callable[[str], str]) -> str:
    """One word of shell."""
    parts: list[str] = []
    at = 0
    for match in PARAMETER.finditer(word):
        parts.append(_literal(word[at : match.start()]))
        parts.append(f'"${{{variable(match.group(1).strip())}}}"')
        at = match.end()
    parts.append(_literal(word[at:]))
    return "".join(parts) or "''"


def _literal(text: str) -> str:
    return shlex.quote(text) if text else ""
