"""Restore checkpoints before a program starts, and report it; see ``restore``."""

from __future__ import annotations

from typing import Any, Mapping

from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.record import Status
from submarine_runtime.snapshots import restore, restore_as_told
from submarine_runtime.storage import DamagedError, NotThereError, Scratch, Store, StoreError


def put_checkpoints_back(
    store: Store,
    scratch: Scratch,
    config: AgentConfig,
    task: str,
    order: Mapping[str, Any] | None,
    status: Status,
) -> Ending | None:
    """Restore checkpoints; return the ending if they exist and cannot be restored.

    Parameters
    ----------
    order
        The coordinator's choice; None: there is no coordinator.
    """
    try:
        if order is None:
            done = restore(store, scratch, config, task, task)
        else:
            done = restore_as_told(store, scratch, config, task, order)
    except (DamagedError, NotThereError) as exc:
        detail = f"The restore point could not be restored: {exc}."
        return Ending(EndReason.LAUNCH_FAILED, detail, unrestored=order is not None)
    except (StoreError, OSError) as exc:
        return Ending(EndReason.LAUNCH_FAILED, f"Checkpoints could not be restored: {exc}.")
    for sentence in done.passed_over:
        status.event("warning", sentence)
    if done.source:
        detail = f"{done.files} files were restored from {done.source}."
        data = {"source": done.source, "files": done.files, "bytes": done.bytes}
        status.event("restored", detail, data=data)
    return None
