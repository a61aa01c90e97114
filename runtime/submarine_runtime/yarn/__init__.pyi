from .capacity import Size as Size, job_id_of as job_id_of, parse_size as parse_size
from .container import (
    LAUNCH_SCRIPT as LAUNCH_SCRIPT,
    first_change as first_change,
    reachable_host as reachable_host,
    wait_reporter as wait_reporter,
    write_error as write_error,
    write_log as write_log,
    write_traceback as write_traceback,
)
from .page import ApplicationMaster as ApplicationMaster, PageServer as PageServer
from .pending import (
    ContainerRequest as ContainerRequest,
    amounts as amounts,
    explain_pending as explain_pending,
    localizing_sentence as localizing_sentence,
)
from .resourcemanager import (
    application as application,
    application_is_over as application_is_over,
    application_was_killed as application_was_killed,
    container_started as container_started,
)
