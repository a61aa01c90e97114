"""Words of a node's command that Azkaban passes as values, in variables of the environment.

Azkaban fills in ``${name}`` before it splits a command into words, so that a value with a quote or
a space becomes further words, and those become options. A property ``env.X`` is filled in too, and
reaches the process as one value. ``submarine workflow with-values`` puts these values back.

Notes
-----
``azkaban.jobExecutor.ProcessJob.getEnvironmentVariables`` and ``partitionCommandLine``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from submarine_jobs.errors import UsageError

#: The verb of ``submarine workflow`` that undoes ``with_references``.
VERB = "with-values"
_VARIABLE = "SUBMARINE_VALUE_"
_REFERENCE = re.compile(rf"@({_VARIABLE}\d{{1,6}})")


def with_references(words: Sequence[str], values: dict[str, str]) -> list[str]:
    """Replace the words that a command line of Azkaban cannot carry by ``@VARIABLE``.

    Those are words with a parameter, empty words, words with a line break, and words that look like
    such a reference.

    Parameters
    ----------
    values
        Variable -> value of the whole node; the words of this command are added.
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
    """The words that ``with_references`` was given, with parameters filled in.

    Raises
    ------
    UsageError
        If the environment lacks a variable.
    """
    found = []
    for word in words:
        match = _REFERENCE.fullmatch(word)
        if match is None:
            found.append(word)
            continue
        if match[1] not in environ:
            raise UsageError(
                f"The environment has no variable {match[1]}.",
                "Azkaban sets it for a project that `submarine workflow submit` has uploaded.",
            )
        found.append(environ[match[1]])
    return found
