"""The statuses of a flow and its nodes, by Azkaban's names (``azkaban.executor.Status``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """Where a flow or a node stands."""

    READY = "READY"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    #: A flow that has failed already, some of whose nodes still run.
    FAILED_FINISHING = "FAILED_FINISHING"
    KILLING = "KILLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    #: It failed, and ``job.succeed.on.failure`` says that this does not matter.
    FAILED_SUCCEEDED = "FAILED_SUCCEEDED"
    #: Of a flow only: its runner ended without a word.
    EXECUTION_STOPPED = "EXECUTION_STOPPED"

    @property
    def good(self) -> bool:
        """Whether what depends on it takes it for a success."""
        return self in (Status.SUCCEEDED, Status.FAILED_SUCCEEDED, Status.SKIPPED)

    @property
    def bad(self) -> bool:
        """Whether what depends on it takes it for a failure."""
        return self in (
            Status.FAILED,
            Status.KILLED,
            Status.CANCELLED,
            Status.EXECUTION_STOPPED,
        )

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.good or self.bad

    @property
    def started(self) -> bool:
        """Whether it is under way."""
        return self in (
            Status.QUEUED,
            Status.RUNNING,
            Status.FAILED_FINISHING,
            Status.KILLING,
        )


class FailureAction(StrEnum):
    """What becomes of the others when a node fails, by the names of Azkaban's ``executeFlow``."""

    FINISH_CURRENT = "finishCurrent"
    CANCEL = "cancelImmediately"
    FINISH_POSSIBLE = "finishPossible"

    @classmethod
    def declared(cls, config: Mapping[str, str]) -> FailureAction:
        """What a flow's ``failure.action`` says, by the names of Azkaban's own constants."""
        word = config.get("failure.action", "").strip()
        return _DECLARED.get(word) or cls(word or cls.FINISH_CURRENT)


class Concurrent(StrEnum):
    """What happens while an earlier run of the workflow is under way; Azkaban's names."""

    SKIP = "skip"
    PIPELINE = "pipeline"
    IGNORE = "ignore"


_DECLARED = {
    "FINISH_CURRENTLY_RUNNING": FailureAction.FINISH_CURRENT,
    "CANCEL_ALL": FailureAction.CANCEL,
    "FINISH_ALL_POSSIBLE": FailureAction.FINISH_POSSIBLE,
}
