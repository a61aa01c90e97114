"""The job directory as the coordinator writes it: claim, outputs, takeover, write gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.job_directory.publisher import Shipper as Shipper
    from submarine_runtime.coordinator.job_directory.snapshot_survey import (
        Surveyor as Surveyor,
        remove_superfluous as remove_superfluous,
    )
    from submarine_runtime.coordinator.job_directory.storage_wait import StorageWait as StorageWait
    from submarine_runtime.coordinator.job_directory.takeover import (
        Earlier as Earlier,
        application_attempt as application_attempt,
        claim as claim,
        earlier as earlier,
        fences as fences,
        stand_down as stand_down,
        watch_containers as watch_containers,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "publisher": ("Shipper",),
            "snapshot_survey": ("Surveyor", "remove_superfluous"),
            "storage_wait": ("StorageWait",),
            "takeover": (
                "Earlier",
                "application_attempt",
                "claim",
                "earlier",
                "fences",
                "stand_down",
                "watch_containers",
            ),
        },
    )
