"""Convert commands of a node to shell lines; ``${name}`` becomes a quoted variable."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: A parameter; an output of another node contains a colon.
PARAMETER = re.compile(r"\$\{([^{}:$]+)\}")
_MAX_DEPTH = 20


def expand(text: str, values: Mapping[str, str], keep: Callable[[str], bool]) -> str:
    """Replace ``${name}`` by values, recursively.

    Parameters
    ----------
    keep
        Returns whether a name remains for the scheduler that runs the command.

    Raises
    ------
    UsageError
        If values refer to each other in a cycle, or a name has no value.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1).strip()
        if keep(name):
            return f"${{{name}}}"
        if name not in values:
            raise UsageError(
                _("`${{{name}}}` has no value.").format(name=name),
                _("Write `{name}: ...` under `config:` of the flow.").format(name=name),
            )
        return values[name]

    for _unused in range(_MAX_DEPTH):
        found = PARAMETER.sub(value_of, text)
        if found == text:
            return text
        text = found
    raise UsageError(
        _("The parameters in `{text}` refer to each other in a cycle.").format(text=text[:80])
    )


def line_of(words: Iterable[str], variable: Callable[[str], str]) -> str:
    """Return a shell line that runs ``words``; each ``${name}`` becomes ``"$VARIABLE"``."""
    return " ".join(word_of(word, variable) for word in words)


def word_of(word: str, variable: Callable[[str], str]) -> str:
    """Return one shell word."""
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
