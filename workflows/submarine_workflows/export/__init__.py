"""Export workflows to other schedulers: Airflow DAG files and crontab lines.

``node_commands`` defines the commands of nodes, which are the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.export.targets import (
        TARGETS as TARGETS,
        Export as Export,
        Wishes as Wishes,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "targets": ("Export", "TARGETS", "Wishes"),
        },
    )
