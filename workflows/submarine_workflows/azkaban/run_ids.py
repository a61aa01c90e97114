"""Ids of Azkaban executions, ``azkaban:1234``, distinct from those of local runs.

The module has no dependencies, so that commands can check an id before loading anything.
"""

from __future__ import annotations

from submarine_jobs.errors import UsageError

RUN_PREFIX = "azkaban:"
#: Azkaban uses 32 bits.
_LARGEST = 2**31 - 1


def is_azkabans(run: str) -> bool:
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
            f"{run} is not the id of an Azkaban run.", f"Such an id is {RUN_PREFIX}1234."
        )
    return int(text)
