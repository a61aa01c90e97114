from .job import Job as Job
from .job_ownership import (
    foreign_owner as foreign_owner,
    noted_owner as noted_owner,
    user_of as user_of,
)
from .listing import (
    all_months as all_months,
    import_job as import_job,
    newest_months as newest_months,
    remove_abandoned as remove_abandoned,
    target_of as target_of,
    unknown_jobs as unknown_jobs,
)
from .packed_environments import PackedEnvironments as PackedEnvironments
from .request_ids import (
    RequestChangedError as RequestChangedError,
    RequestPendingError as RequestPendingError,
    SubmitRequest as SubmitRequest,
    changed as changed,
    submit_once as submit_once,
)
from .run_attempts import start_or_join as start_or_join
from .session import Session as Session
from .started_jobs import (
    add_listener as add_listener,
    any_started as any_started,
    limit_kept_jobs as limit_kept_jobs,
    pending_submits as pending_submits,
    remove_listener as remove_listener,
    set_notebook as set_notebook,
    submitting as submitting,
)
from .token_deliveries import TokenDeliveries as TokenDeliveries
from .views import final_record as final_record, view_job as view_job
from .waiting import describe_ending as describe_ending
from .watcher import Watcher as Watcher
