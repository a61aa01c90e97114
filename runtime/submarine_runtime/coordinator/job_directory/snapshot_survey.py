"""Choose the restore point of an epoch in a thread of the coordinator."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from submarine_runtime.restore_points import RestoreQuery, find_restore_point
from submarine_runtime.storage import Store, StoreError, retry


class SnapshotSurvey:
    """Choose restore points in a thread, one at a time.

    Parameters
    ----------
    post
        Posts ``restore_point`` or ``survey_failed`` to the event loop.
    save_grace
        Seconds to wait for an unavailable store.
    """

    def __init__(
        self,
        store: Store,
        post: Callable[[dict[str, Any]], None],
        save_grace: float,
    ) -> None:
        self._store, self._post, self._save_grace = store, post, save_grace
        self._busy = 0

    def start(self, query: RestoreQuery) -> None:
        """Start to choose the restore point for ``query``, unless its epoch is being chosen."""
        if self._busy != query.epoch:
            self._busy = query.epoch
            arguments = (query,)
            threading.Thread(target=self._run, args=arguments, name="survey", daemon=True).start()

    def _run(self, query: RestoreQuery) -> None:
        message: dict[str, Any] = {"type": "restore_point", "epoch": query.epoch}
        try:
            choice = retry(
                lambda: find_restore_point(self._store, query),
                time.monotonic() + self._save_grace,
                store=self._store,
            )
            message["choice"] = choice.to_json()
        except (StoreError, ValueError, OSError) as exc:
            message.update(type="survey_failed", detail=str(exc)[:1000])
        finally:
            self._busy = 0
        self._post(message)
