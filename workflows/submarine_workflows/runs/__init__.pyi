from .folders import RunFolder as RunFolder, RunNotFoundError as RunNotFoundError, Runs as Runs
from .journal import Journal as Journal, Lock as Lock, hold as hold, is_held as is_held
from .logs import follow_logs as follow_logs, log_outcome as log_outcome
from .missed_runs import (
    MissedRuns as MissedRuns,
    find_missed_runs as find_missed_runs,
    scheduled_starts as scheduled_starts,
)
from .statuses import Concurrent as Concurrent, FailureAction as FailureAction, Status as Status
from .tables import (
    head_of as head_of,
    history_html as history_html,
    history_rows as history_rows,
    history_text as history_text,
    html_of as html_of,
    log_of as log_of,
    log_tail as log_tail,
    missed_runs_sentence as missed_runs_sentence,
    table_of as table_of,
)
from .views import RunView as RunView, view_of as view_of
