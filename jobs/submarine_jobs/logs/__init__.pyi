from .attempts import (
    list_attempts as list_attempts,
    saved_attempts as saved_attempts,
    started_attempts as started_attempts,
    unsaved_attempts as unsaved_attempts,
)
from .delivery import LIVE_PIECE as LIVE_PIECE, LogDelivery as LogDelivery
from .following import follow as follow, follow_newest as follow_newest
from .growing_log import GrowingLog as GrowingLog
from .lengths import (
    ALL as ALL,
    ALL_TASKS as ALL_TASKS,
    final_lengths as final_lengths,
    list_shipped as list_shipped,
)
from .log_tail import TAIL_BYTES as TAIL_BYTES, Tail as Tail
from .merging import merged as merged, read_from as read_from
from .reader import (
    MAX_READ as MAX_READ,
    NO_INDEX as NO_INDEX,
    LogReader as LogReader,
    TimeIndex as TimeIndex,
    check_log_names as check_log_names,
    log_key as log_key,
    parsed_lengths as parsed_lengths,
)
from .shipped_log import (
    ShippedLog as ShippedLog,
    shipped_attempts as shipped_attempts,
    shipped_lengths as shipped_lengths,
    shipped_tasks as shipped_tasks,
)
from .source import LogSource as LogSource
from .times import (
    Mark as Mark,
    parse_columns as parse_columns,
    parse_index as parse_index,
    part_of as part_of,
    read_index as read_index,
    shipped_index as shipped_index,
)
