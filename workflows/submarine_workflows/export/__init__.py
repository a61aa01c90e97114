"""A workflow in the words of other schedulers: a DAG file of Airflow's, lines of a crontab.

Writes texts; what a node runs is ``node_commands``' and the same everywhere.
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
