"""Statuses of a flow and its nodes, with Azkaban's names (``azkaban.executor.Status``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """Status of a flow or a node."""

    READY = "READY"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    #: A flow that has failed and has running nodes.
    FAILED_FINISHING = "FAILED_FINISHING"
    KILLING = "KILLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    #: Failed with ``job.succeed.on.failure``.
    FAILED_SUCCEEDED = "FAILED_SUCCEEDED"
    #: Flows only: the runner ended without recording an end.
    EXECUTION_STOPPED = "EXECUTION_STOPPED"

    @property
    def counts_as_success(self) -> bool:
        """Whether dependent nodes treat it as a success."""
        return self in (Status.SUCCEEDED, Status.FAILED_SUCCEEDED, Status.SKIPPED)

    @property
    def counts_as_failure(self) -> bool:
        """Whether dependent nodes treat it as a failure."""
        return self in (
            Status.FAILED,
            Status.KILLED,
            Status.CANCELLED,
            Status.EXECUTION_STOPPED,
        )

    @property
    def ended(self) -> bool:
        """Whether it is final."""
        return self.counts_as_success or self.counts_as_failure

    @property
    def started(self) -> bool:
        """Whether the flow or node has started and not ended."""
        return self in (
            Status.QUEUED,
            Status.RUNNING,
            Status.FAILED_FINISHING,
            Status.KILLING,
        )


class FailureAction(StrEnum):
    """Effect of a failed node on other nodes, with the names of Azkaban's ``executeFlow``."""

    FINISH_CURRENT = "finishCurrent"
    CANCEL = "cancelImmediately"
    FINISH_POSSIBLE = "finishPossible"

    @classmethod
    def declared(cls, config: Mapping[str, str]) -> FailureAction:
        """Return a flow's ``failure.action``, given by the name of Azkaban's constant."""
        word = config.get("failure.action", "").strip()
        return _DECLARED.get(word) or cls(word or cls.FINISH_CURRENT)


class Concurrent(StrEnum):
    """Behaviour while another run of the workflow is active, with Azkaban's names."""

    SKIP = "skip"
    PIPELINE = "pipeline"
    IGNORE = "ignore"


_DECLARED = {
    "FINISH_CURRENTLY_RUNNING": FailureAction.FINISH_CURRENT,
    "CANCEL_ALL": FailureAction.CANCEL,
    "FINISH_ALL_POSSIBLE": FailureAction.FINISH_POSSIBLE,
}
