"""The agent of a job with one task: from the claim to the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.single_task.supervisor import SingleTaskAgent as SingleTaskAgent
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "supervisor": ("SingleTaskAgent",),
        },
    )
