"""Tells Jupyter's event bus that a job has changed: a hint for other extensions, not the news.

The schema is ``events/job_changed.yaml``. Whoever hears it asks for the job by REST.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from submarine_server.monitor.job_table import Row

log = logging.getLogger(__name__)

SCHEMA = "https://events.jupyter-submarine.org/job_changed/v1"


def teller(event_logger: Any) -> Callable[[Row], None] | None:
    """What emits a hint for a row; None where the server has no event bus."""
    if event_logger is None:
        return None

    def tell(row: Row) -> None:
        if SCHEMA not in event_logger.schemas:
            return
        try:
            event_logger.emit(
                schema_id=SCHEMA, data={"job_id": row["job_id"], "state": row["state"]}
            )
        except Exception:  # other people's listeners and schemas must not stop the watcher
            log.exception("a hint that job %s has changed was not sent", row["job_id"])

    return tell
