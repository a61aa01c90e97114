"""The job directory as containers see it, and the scratch directory of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.storage.claims import (
        application_id as application_id,
        cancel_request as cancel_request,
        claim as claim,
        claimed_by_closer as claimed_by_closer,
        container_id as container_id,
        is_superseded as is_superseded,
    )
    from submarine_runtime.storage.fetching import (
        DamagedError as DamagedError,
        Fetcher as Fetcher,
        FileRequest as FileRequest,
    )
    from submarine_runtime.storage.leases import (
        LeaseWatch as LeaseWatch,
        renewal_interval as renewal_interval,
    )
    from submarine_runtime.storage.local import (
        NO_SPACE as NO_SPACE,
        make_directories as make_directories,
    )
    from submarine_runtime.storage.opening import open_store as open_store
    from submarine_runtime.storage.retries import retry as retry, wait_sentence as wait_sentence
    from submarine_runtime.storage.scratch import Scratch as Scratch
    from submarine_runtime.storage.store import (
        Appender as Appender,
        Entry as Entry,
        NotFoundError as NotFoundError,
        Store as Store,
        StoreError as StoreError,
        UnconfirmedError as UnconfirmedError,
        temporary_name as temporary_name,
    )
    from submarine_runtime.storage.webhdfs import WebHdfsStore as WebHdfsStore
    from submarine_runtime.storage.write_gate import WriteGate as WriteGate
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "claims": (
                "application_id",
                "cancel_request",
                "claim",
                "claimed_by_closer",
                "container_id",
                "is_superseded",
            ),
            "fetching": ("DamagedError", "Fetcher", "FileRequest"),
            "leases": ("LeaseWatch", "renewal_interval"),
            "local": ("NO_SPACE", "make_directories"),
            "opening": ("open_store",),
            "retries": ("retry", "wait_sentence"),
            "scratch": ("Scratch",),
            "store": (
                "Appender",
                "Entry",
                "NotFoundError",
                "Store",
                "StoreError",
                "UnconfirmedError",
                "temporary_name",
            ),
            "webhdfs": ("WebHdfsStore",),
            "write_gate": ("WriteGate",),
        },
    )
