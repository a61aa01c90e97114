from .closing import (
    close as close,
    close_unsubmitted as close_unsubmitted,
    shipped_record as shipped_record,
)
from .index import (
    IndexEntry as IndexEntry,
    JobQuery as JobQuery,
    JobStore as JobStore,
    Origin as Origin,
    Owner as Owner,
    cursor_of as cursor_of,
    with_owner as with_owner,
)
from .leases import renew_while_alive as renew_while_alive
from .observation import (
    Target as Target,
    bare_record as bare_record,
    last_known_record as last_known_record,
    observe_all as observe_all,
    record_from_backend as record_from_backend,
    record_without_backend as record_without_backend,
    record_without_directory as record_without_directory,
    resolve_record as resolve_record,
    save_record as save_record,
)
from .page_views import RENEW_SECONDS as RENEW_SECONDS, PageView as PageView
