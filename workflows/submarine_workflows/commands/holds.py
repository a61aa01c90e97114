"""``submarine workflow holds CONDITION``: whether a condition on outputs holds, for schedulers.

Judges outputs alone: what ran and how it ended is the scheduler's to know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from submarine_jobs.errors import UsageError
from submarine_workflows.model import ConditionError, Facts, read_condition

_MOST = 1 << 20


def holds(condition: str, outputs: Iterable[str]) -> bool:
    """Whether ``condition`` holds, given what earlier nodes put out.

    Parameters
    ----------
    outputs
        ``NODE={"accuracy": 0.93}``, one for each node; nothing after ``=``: it put out nothing.

    Raises
    ------
    UsageError
        If the condition or an output cannot be read.
    """
    try:
        read = read_condition(condition)
    except ConditionError as exc:
        raise UsageError(str(exc)) from None
    found = dict(_output(text) for text in outputs)
    return read.holds(Facts((True,), found))


def _output(text: str) -> tuple[str, dict[str, object]]:
    node, sign, value = text.partition("=")
    if not sign or not node or len(value) > _MOST:
        raise UsageError(
            f"--output {text[:60]!r} is no output of a node.", 'Write NODE={"name": value}.'
        )
    if not value.strip():
        return node, {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f"The output of {node} is no JSON object: {value[:60]!r}.",
            "A node writes it to $JOB_OUTPUT_PROP_FILE.",
        )
    return node, found
