"""Create the client of a job directory."""

from __future__ import annotations

from submarine_runtime.protocol import JobStore
from submarine_runtime.storage.local import LocalStore
from submarine_runtime.storage.store import Store


def open_store(store: JobStore, timeout: float = 20.0) -> Store:
    """Return the client for ``store``.

    Raises
    ------
    ValueError
        If the kind is neither ``local`` nor ``webhdfs``.
    """
    if store.kind == "local":
        return LocalStore(store.path)
    if store.kind == "webhdfs":
        # cost: http and ssl, which a local job directory does not need.
        from submarine_runtime.storage.webhdfs import WebHdfsStore

        return WebHdfsStore.of_container(store, timeout)
    raise ValueError(f"job store {store.kind!r} is unknown; this agent supports local and webhdfs")
