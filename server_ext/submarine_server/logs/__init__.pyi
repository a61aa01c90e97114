from .listing import list_logs as list_logs, newest_attempt as newest_attempt
from .pages import (
    MAX_LOGS as MAX_LOGS,
    Page as Page,
    PageRequest as PageRequest,
    read_page as read_page,
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
from .sources import (
    log_reader as log_reader,
    log_source as log_source,
    unfollow as unfollow,
)
