"""Ids of Azkaban executions, ``azkaban:1234``, distinct from those of local runs.

The module has no dependencies, so that commands can check an id before loading anything.
"""

from __future__ import annotations

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

RUN_PREFIX = "azkaban:"
#: Azkaban uses 32 bits.
_LARGEST = 2**31 - 1


def is_azkaban_run(run: str) -> bool:
    """Return whether the id of a run, or the name of a workflow, refers to Azkaban."""
    return run.startswith(RUN_PREFIX)


def execution_id(run: str) -> int:
    """Return 1234 for ``azkaban:1234``.

    Raises
    ------
    UsageError
        If it is not the id of an Azkaban execution.
    """
    text = run.removeprefix(RUN_PREFIX)
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > _LARGEST:
        raise UsageError(
            _("{run} is not the id of an Azkaban run.").format(run=run),
            _("Such an id is {run_prefix}1234.").format(run_prefix=RUN_PREFIX),
        )
    return int(text)
