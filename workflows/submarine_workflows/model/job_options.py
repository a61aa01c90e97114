"""Check a node's ``job:`` options against the options of ``submarine run``.

The check needs no cluster, so it does not compare resources with the cluster's limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from submarine_jobs.errors import SubmarineError
from submarine_workflows.model.workflow import Scalar

_SOURCE = "job"


@dataclass(frozen=True)
class Wrong:
    """A problem with an option; ``option`` is empty if it concerns a combination."""

    sentence: str
    option: str = ""


def problem_of(options: Mapping[str, Scalar]) -> Wrong | None:
    """Return the problem of a node's job options, or None.

    For a value that contains a parameter only the option's name is checked.
    """
    fixed = {key: value for key, value in options.items() if "${" not in str(value)}
    names = tuple(sorted(set(options) - set(fixed)))
    problem = _problem(tuple(fixed.items()), names)
    if not problem:
        return None
    alone = [(name, _problem((), (name,))) for name in names]
    alone += [(item[0], _problem((item,), ())) for item in fixed.items()]
    return next((Wrong(said, name) for name, said in alone if said), Wrong(problem))


@lru_cache(256)
def _problem(fixed: tuple[tuple[str, Scalar], ...], names: tuple[str, ...]) -> str:
    # Loaded on demand: importing the options of `run` is slow, and workflows without jobs need
    # none.
    from submarine_jobs.commands.run import parse_run
    from submarine_magics.commands import default_words, option_named, spellings

    try:
        for name in names:
            option_named(name, _SOURCE, spellings())
        parse_run(["job", *default_words(dict(fixed), [], _SOURCE)])
    except SubmarineError as error:
        return " ".join(word for word in (error.message, error.fix) if word)
    return ""
