from .cell_body import (
    CellBody as CellBody,
    CellVerb as CellVerb,
    complete_below as complete_below,
    explain_below as explain_below,
)
from .execution import complete as complete, execute as execute
from .groups import verb_group as verb_group
from .ownership import (
    ask_if_foreign as ask_if_foreign,
    owner_as_known as owner_as_known,
    say_if_foreign as say_if_foreign,
)
from .shared_options import (
    backend_option as backend_option,
    complete_jobs as complete_jobs,
    complete_programs as complete_programs,
    complete_queues as complete_queues,
    duration_option as duration_option,
    job_argument as job_argument,
    jobs_argument as jobs_argument,
    parameters_option as parameters_option,
    profile_option as profile_option,
    program_argument as program_argument,
    remember_queues as remember_queues,
)
from .usage import (
    as_sentence as as_sentence,
    of_this_machine as of_this_machine,
    printable as printable,
)
from .verb import (
    AS_JSON as AS_JSON,
    CONTEXT as CONTEXT,
    TYPED as TYPED,
    Callback as Callback,
    ParsedType as ParsedType,
    Verb as Verb,
    normal as normal,
    option as option,
    spelled as spelled,
)
from .verbs import grammar as grammar, plugins as plugins
from .waiting import wait_for as wait_for
