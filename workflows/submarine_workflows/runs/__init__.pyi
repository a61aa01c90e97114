from .folders import RunFolder as RunFolder, RunNotFoundError as RunNotFoundError, Runs as Runs
from .journal import Journal as Journal, Lock as Lock, held as held, is_held as is_held
from .logs import followed as followed, shown as shown
from .missed_runs import Missed as Missed, missed as missed, scheduled_starts as scheduled_starts
from .statuses import Concurrent as Concurrent, FailureAction as FailureAction, Status as Status
from .tables import (
    head_of as head_of,
    history_html as history_html,
    history_rows as history_rows,
    history_text as history_text,
    html_of as html_of,
    log_of as log_of,
    log_tail as log_tail,
    missed_sentence as missed_sentence,
    table_of as table_of,
)
from .views import RunView as RunView, view_of as view_of
