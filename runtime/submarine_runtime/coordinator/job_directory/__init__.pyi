from .job_outputs import publish_job_outputs as publish_job_outputs
from .publisher import EventPublisher as EventPublisher
from .snapshot_survey import SnapshotSurvey as SnapshotSurvey
from .storage_wait import StorageWait as StorageWait
from .takeover import (
    EarlierAttempts as EarlierAttempts,
    application_attempt as application_attempt,
    claim_job as claim_job,
    earlier_fences as earlier_fences,
    read_earlier_attempts as read_earlier_attempts,
    stop_earlier_coordinator as stop_earlier_coordinator,
    watch_earlier_containers as watch_earlier_containers,
)
