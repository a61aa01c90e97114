"""Evaluate a condition on outputs, for ``submarine workflow holds CONDITION``.

Only outputs are evaluated. The scheduler that calls it evaluates the states of nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from submarine_jobs.errors import UsageError
from submarine_workflows.model import ConditionError, Facts, read_condition

_MOST = 1 << 20


def holds(condition: str, outputs: Iterable[str]) -> bool:
    """Return whether ``condition`` holds for the outputs of earlier nodes.

    Parameters
    ----------
    outputs
        ``NODE={"accuracy": 0.93}`` for each node; empty after ``=`` if the node has no output.

    Raises
    ------
    UsageError
        If the condition or an output cannot be parsed.
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
            f"--output {text[:60]!r} is not an output of a node.", 'Write NODE={"name": value}.'
        )
    if not value.strip():
        return node, {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f"The output of {node} is not a JSON object: {value[:60]!r}.",
            "A node writes it to $JOB_OUTPUT_PROP_FILE.",
        )
    return node, found
