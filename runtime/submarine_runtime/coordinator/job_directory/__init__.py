"""The job directory as the coordinator writes it: claim, outputs, takeover, write gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.job_directory.publisher import (
        EventPublisher as EventPublisher,
    )
    from submarine_runtime.coordinator.job_directory.snapshot_survey import (
        SnapshotSurvey as SnapshotSurvey,
        delete_superfluous_snapshots as delete_superfluous_snapshots,
    )
    from submarine_runtime.coordinator.job_directory.storage_wait import StorageWait as StorageWait
    from submarine_runtime.coordinator.job_directory.takeover import (
        EarlierAttempts as EarlierAttempts,
        application_attempt as application_attempt,
        claim_job as claim_job,
        earlier_fences as earlier_fences,
        read_earlier_attempts as read_earlier_attempts,
        stop_earlier_coordinator as stop_earlier_coordinator,
        watch_earlier_containers as watch_earlier_containers,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "publisher": ("EventPublisher",),
            "snapshot_survey": (
                "SnapshotSurvey",
                "delete_superfluous_snapshots",
            ),
            "storage_wait": ("StorageWait",),
            "takeover": (
                "EarlierAttempts",
                "application_attempt",
                "claim_job",
                "earlier_fences",
                "read_earlier_attempts",
                "stop_earlier_coordinator",
                "watch_earlier_containers",
            ),
        },
    )
