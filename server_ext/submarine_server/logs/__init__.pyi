from .growing_log import GrowingLog as GrowingLog
from .lengths import ALL_TASKS as ALL_TASKS
from .listing import (
    list_logs as list_logs,
    log_reader as log_reader,
    newest_attempt as newest_attempt,
)
from .live_logs import LiveLogs as LiveLogs, follow as follow, unfollow as unfollow
from .pages import (
    MAX_LOGS as MAX_LOGS,
    Page as Page,
    PageRequest as PageRequest,
    read_page as read_page,
)
from .reader import (
    MAX_READ as MAX_READ,
    LogReader as LogReader,
    TimeIndex as TimeIndex,
    log_key as log_key,
)
from .search import (
    ERROR_PATTERN as ERROR_PATTERN,
    MAX_PATTERN as MAX_PATTERN,
    TIME_LIMIT as TIME_LIMIT,
    Hit as Hit,
    SearchRequest as SearchRequest,
    SearchResult as SearchResult,
    compile_pattern as compile_pattern,
    search_limiter as search_limiter,
    search_log as search_log,
)
