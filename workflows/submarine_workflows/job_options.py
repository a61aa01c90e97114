"""Whether what stands under a node's ``job:`` are options of ``submarine run`` with fit values.

Known before the first night, not in it. Asks no cluster whether it has as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from submarine_jobs.errors import SubmarineError
from submarine_workflows.workflow import Scalar

_SOURCE = "job"


def problem_of(options: Mapping[str, Scalar]) -> str:
    """What is wrong, one sentence; empty: nothing.

    A value with a parameter in it is known only when the node runs; its option is checked now.
    """
    fixed = {key: value for key, value in options.items() if "${" not in str(value)}
    return _problem(tuple(fixed.items()), tuple(sorted(set(options) - set(fixed))))


@lru_cache(256)
def _problem(fixed: tuple[tuple[str, Scalar], ...], names: tuple[str, ...]) -> str:
    # Not for a workflow without jobs: the options of `run` take a while to load.
    from submarine_jobs.commands.run import parse_run
    from submarine_magics.run_defaults import default_words, option_named, spellings

    try:
        for name in names:
            option_named(name, _SOURCE, spellings())
        parse_run(["job", *default_words(dict(fixed), [], _SOURCE)])
    except SubmarineError as error:
        return " ".join(word for word in (error.message, error.fix) if word)
    return ""
