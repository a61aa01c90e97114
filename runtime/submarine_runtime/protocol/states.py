"""The states of a job, and which state may follow which."""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """State of a job; the value is used in JSON and displayed to users."""

    SUBMITTING = "SUBMITTING"
    PENDING = "PENDING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    FINISHING = "FINISHING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    LOST = "LOST"

    def __str__(self) -> str:
        return self.value

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as far as is known."""
        return self in _ENDED


_ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.LOST})
_ENDINGS = frozenset({State.FAILED, State.CANCELLED, State.LOST})

TRANSITIONS: dict[State, frozenset[State]] = {
    State.SUBMITTING: _ENDINGS | {State.PENDING, State.STARTING},
    State.PENDING: _ENDINGS | {State.STARTING},
    State.STARTING: _ENDINGS | {State.RUNNING, State.RESTARTING, State.FINISHING},
    State.RUNNING: _ENDINGS | {State.RESTARTING, State.FINISHING},
    State.RESTARTING: _ENDINGS | {State.STARTING, State.RUNNING, State.FINISHING},
    State.FINISHING: _ENDINGS | {State.SUCCEEDED},
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
    # LOST may be revised when the cluster answers again.
    State.LOST: frozenset(State) - {State.LOST, State.SUBMITTING},
}


def may_follow(before: State, after: State) -> bool:
    """Return whether a job may go from ``before`` to ``after``, which may be the same state."""
    return before is after or after in TRANSITIONS[before]
