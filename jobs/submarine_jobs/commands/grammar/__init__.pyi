from .cell_body import (
    CellBody as CellBody,
    CellVerb as CellVerb,
    complete_below as complete_below,
    explain_below as explain_below,
)
from .execution import complete as complete, execute as execute
from .groups import verb_group as verb_group
from .ownership import (
    confirm_foreign as confirm_foreign,
    known_owner as known_owner,
    show_foreign_owner as show_foreign_owner,
)
from .shared_options import (
    backend_option as backend_option,
    cache_queues as cache_queues,
    complete_jobs as complete_jobs,
    complete_programs as complete_programs,
    complete_queues as complete_queues,
    duration_option as duration_option,
    job_argument as job_argument,
    jobs_argument as jobs_argument,
    parameters_option as parameters_option,
    profile_option as profile_option,
    program_argument as program_argument,
)
from .usage import (
    convert_error as convert_error,
    local_error as local_error,
    printable as printable,
)
from .verb import (
    AS_JSON as AS_JSON,
    CONTEXT as CONTEXT,
    TYPED as TYPED,
    Callback as Callback,
    HelpRequested as HelpRequested,
    ParsedType as ParsedType,
    Verb as Verb,
    normal as normal,
    option as option,
    with_prefix as with_prefix,
)
from .verbs import VERBS as VERBS, grammar as grammar, plugins as plugins
from .waiting import wait_for as wait_for
