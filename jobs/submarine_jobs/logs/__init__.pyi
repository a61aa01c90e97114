from .following import follow as follow, follow_newest as follow_newest
from .log_tail import TAIL_BYTES as TAIL_BYTES, Tail as Tail
from .merging import merged as merged, read_from as read_from
from .reading import (
    check_log_names as check_log_names,
    list_attempts as list_attempts,
    read_attempts as read_attempts,
    read_log as read_log,
    saved_attempts as saved_attempts,
    started_attempts as started_attempts,
    unsaved_attempts as unsaved_attempts,
)
from .shipped_log import (
    ShippedLog as ShippedLog,
    shipped_attempts as shipped_attempts,
    shipped_lengths as shipped_lengths,
    shipped_tasks as shipped_tasks,
)
from .times import (
    Mark as Mark,
    parse_index as parse_index,
    part_of as part_of,
    shipped_index as shipped_index,
)
