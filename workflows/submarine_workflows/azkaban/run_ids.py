"""Runs of Azkaban's by our words, ``azkaban:1234``: beside those of this machine, and never mixed.

Imports nothing, so that a verb may ask before it loads anything.
"""

from __future__ import annotations

from submarine_jobs.errors import UsageError

RUN_PREFIX = "azkaban:"
#: Azkaban counts in 32 bits.
_LARGEST = 2**31 - 1


def is_azkabans(run: str) -> bool:
    """Whether a run, or the name of a workflow, is one of Azkaban's."""
    return run.startswith(RUN_PREFIX)


def execution_id(run: str) -> int:
    """1234 of ``azkaban:1234``.

    Raises
    ------
    UsageError
        If it is no run of Azkaban's.
    """
    text = run.removeprefix(RUN_PREFIX)
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > _LARGEST:
        raise UsageError(f"{run} is no run of Azkaban's.", f"Such a run is {RUN_PREFIX}1234.")
    return int(text)
