"""Synchronization of checkpoints, model and TensorBoard files while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.sync.chief_checkpoints import ChiefCheckpoints as ChiefCheckpoints
    from submarine_runtime.agent.sync.sync_thread import SyncThread as SyncThread
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "chief_checkpoints": ("ChiefCheckpoints",),
            "sync_thread": ("SyncThread",),
        },
    )
