"""The job directory as containers see it, and the scratch directory of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.storage.claims import (
        application_id as application_id,
        asked_to_cancel as asked_to_cancel,
        claim as claim,
        claimed_by_closer as claimed_by_closer,
        container_id as container_id,
        replaced as replaced,
    )
    from submarine_runtime.storage.fetching import (
        DamagedError as DamagedError,
        Fetching as Fetching,
        Wanted as Wanted,
    )
    from submarine_runtime.storage.leases import LeaseWatch as LeaseWatch, pause_of as pause_of
    from submarine_runtime.storage.local import (
        NO_ROOM as NO_ROOM,
        make_directories as make_directories,
    )
    from submarine_runtime.storage.scratch import Scratch as Scratch
    from submarine_runtime.storage.store import (
        Appender as Appender,
        Entry as Entry,
        NotThereError as NotThereError,
        Store as Store,
        StoreError as StoreError,
        UnconfirmedError as UnconfirmedError,
        open_store as open_store,
        patiently as patiently,
        temporary_name as temporary_name,
        wait_sentence as wait_sentence,
    )
    from submarine_runtime.storage.webhdfs import WebHdfsStore as WebHdfsStore
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "claims": (
                "application_id",
                "asked_to_cancel",
                "claim",
                "claimed_by_closer",
                "container_id",
                "replaced",
            ),
            "fetching": ("DamagedError", "Fetching", "Wanted"),
            "leases": ("LeaseWatch", "pause_of"),
            "local": ("NO_ROOM", "make_directories"),
            "scratch": ("Scratch",),
            "store": (
                "Appender",
                "Entry",
                "NotThereError",
                "Store",
                "StoreError",
                "UnconfirmedError",
                "open_store",
                "patiently",
                "temporary_name",
                "wait_sentence",
            ),
            "webhdfs": ("WebHdfsStore",),
        },
    )
