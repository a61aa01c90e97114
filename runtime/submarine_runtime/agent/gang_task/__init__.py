"""The agent of a task of a distributed job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.gang_task.task_agent import TaskAgent as TaskAgent
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "task_agent": ("TaskAgent",),
        },
    )
