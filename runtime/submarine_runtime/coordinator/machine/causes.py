"""Find the cause among the failures of one epoch; ``faults`` decides what follows.

A program that fails makes its peers fail: they lose their connections, or a library aborts them.
The coordinator therefore collects failures for a while before it determines the cause.
"""

from __future__ import annotations

import signal
from typing import Sequence

from submarine_runtime import frameworks
from submarine_runtime.coordinator.machine.state import Outcome
from submarine_runtime.protocol import EndReason

#: Task and outcome of each failure, in the order in which they were reported.
Failures = Sequence["tuple[str, Outcome]"]


def is_abort(outcome: Outcome) -> bool:
    """Whether SIGABRT ended the program: libraries abort a process after the failure of a peer."""
    return outcome.reason is EndReason.KILLED_BY_SIGNAL and outcome.signal == signal.SIGABRT


def is_connection_error(outcome: Outcome) -> bool:
    """Whether the program ended because a connection of the collective (gloo, NCCL, gRPC) broke."""
    if outcome.reason is not EndReason.PROGRAM_ERROR:
        return False
    failure = outcome.failure or {}
    message = str(failure.get("message") or "") if failure else outcome.detail
    return frameworks.follows_from_lost_peer(str(failure.get("type") or ""), message)


def cause_of(failures: Failures) -> tuple[str, Outcome] | None:
    """Return the failure that caused the others; None if all are connection errors.

    Out-of-memory first, then SIGABRT, then the error of the program that failed first by the clocks
    of the nodes, which may not have been the first to exit. SIGABRT does not count beside an
    exception of another task that is no connection error.
    """
    for task, outcome in failures:
        if outcome.reason is EndReason.OUT_OF_MEMORY:
            return task, outcome
    errors = [item for item in failures if not (is_abort(item[1]) or is_connection_error(item[1]))]
    raised = [task for task, outcome in errors if _exception(outcome)]
    for task, outcome in failures:
        if is_abort(outcome) and not any(other != task for other in raised):
            return task, outcome
    # Reports without a time, of older agents, keep their order.
    return min(errors, key=lambda item: item[1].failed or 0.0, default=None)


def cause_key(outcome: Outcome) -> str:
    """Return a key; two failures with the same key have the same cause.

    The key of an exception is its type, file and line, of other failures the exit code or reason.
    """
    if outcome.reason is not EndReason.PROGRAM_ERROR:
        return f"{outcome.reason.value} {outcome.signal or ''}".strip()
    failure = _exception(outcome)
    if failure:
        frames = failure.get("frames")
        last = frames[-1] if isinstance(frames, list) and frames else {}
        place = f"{last.get('file')}:{last.get('line')}" if isinstance(last, dict) else ""
        return f"{failure.get('type')} {place}"[:1000]
    return f"exit code {outcome.exit_code}"


def _exception(outcome: Outcome) -> dict[str, object] | None:
    """Return the exception that ended the program; None for ``sys.exit`` and other ends."""
    failure = outcome.failure
    if not failure or str(failure.get("type")) == "SystemExit":
        return None
    return failure
