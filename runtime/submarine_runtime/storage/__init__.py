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
    from submarine_runtime.storage.opening import open_store as open_store
    from submarine_runtime.storage.retries import (
        patiently as patiently,
        wait_sentence as wait_sentence,
    )
    from submarine_runtime.storage.scratch import Scratch as Scratch
    from submarine_runtime.storage.store import (
        Appender as Appender,
        Entry as Entry,
        NotThereError as NotThereError,
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
                "asked_to_cancel",
                "claim",
                "claimed_by_closer",
                "container_id",
                "replaced",
            ),
            "fetching": ("DamagedError", "Fetching", "Wanted"),
            "leases": ("LeaseWatch", "pause_of"),
            "local": ("NO_ROOM", "make_directories"),
            "opening": ("open_store",),
            "retries": ("patiently", "wait_sentence"),
            "scratch": ("Scratch",),
            "store": (
                "Appender",
                "Entry",
                "NotThereError",
                "Store",
                "StoreError",
                "UnconfirmedError",
                "temporary_name",
            ),
            "webhdfs": ("WebHdfsStore",),
            "write_gate": ("WriteGate",),
        },
    )
