"""Pass words of a node's command to Azkaban as environment variables.

Azkaban fills in ``${name}`` before it splits a command into words, so a value with quotes or spaces
becomes further words, which may be parsed as options. Properties ``env.X`` are filled in too and
reach the process as one value. ``submarine workflow with-values`` inserts these values again.

Notes
-----
``azkaban.jobExecutor.ProcessJob.getEnvironmentVariables`` and ``partitionCommandLine``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: The command of ``submarine workflow`` that reverses ``with_references``.
VERB = "with-values"
_VARIABLE = "SUBMARINE_VALUE_"
_REFERENCE = re.compile(rf"@({_VARIABLE}\d{{1,6}})")


def with_references(words: Sequence[str], values: dict[str, str]) -> list[str]:
    """Replace words that an Azkaban command line cannot contain by ``@VARIABLE``.

    These are words with a parameter, empty words, words with a line break, and words that look like
    such a reference.

    Parameters
    ----------
    values
        Variable -> value for the whole node; the words of this command are added.
    """
    found = []
    for word in words:
        if word and "${" not in word and word.isprintable() and not _REFERENCE.fullmatch(word):
            found.append(word)
            continue
        name = f"{_VARIABLE}{len(values) + 1}"
        values[name] = word
        found.append(f"@{name}")
    return found


def with_values(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the words that ``with_references`` replaced, with parameters filled in.

    Raises
    ------
    UsageError
        If a variable is missing in the environment.
    """
    found = []
    for word in words:
        match = _REFERENCE.fullmatch(word)
        if match is None:
            found.append(word)
            continue
        if match[1] not in environ:
            raise UsageError(
                _("The environment has no variable {match}.").format(match=match[1]),
                _("Azkaban sets it for a project that `submarine workflow submit` has uploaded."),
            )
        found.append(environ[match[1]])
    return found
