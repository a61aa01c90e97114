from .claims import (
    application_id as application_id,
    cancel_request as cancel_request,
    claim as claim,
    claimed_by_closer as claimed_by_closer,
    container_id as container_id,
    is_superseded as is_superseded,
    new_claim as new_claim,
)
from .factory import open_store as open_store
from .fetcher import DamagedError as DamagedError, Fetcher as Fetcher, FileRequest as FileRequest
from .leases import LeaseWatch as LeaseWatch, renewal_interval as renewal_interval
from .local import (
    NO_SPACE as NO_SPACE,
    LocalStore as LocalStore,
    make_directories as make_directories,
)
from .publishing_thread import PublishingThread as PublishingThread
from .retries import retry as retry, wait_sentence as wait_sentence
from .scratch import Scratch as Scratch
from .store import (
    Appender as Appender,
    Entry as Entry,
    NotFoundError as NotFoundError,
    Store as Store,
    StoreError as StoreError,
    UnauthenticatedError as UnauthenticatedError,
    UnconfirmedError as UnconfirmedError,
    UntrustedError as UntrustedError,
)
from .token_refresh import TokenRefresh as TokenRefresh
from .webhdfs import WebHdfsStore as WebHdfsStore
from .write_gate import WriteGate as WriteGate
