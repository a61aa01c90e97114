"""Choose, merge and show the logs of a job's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.commands.log_output.pieces import (
        followed as followed,
        kept as kept,
        shown as shown,
        start_of as start_of,
    )
    from submarine_jobs.commands.log_output.tasks import (
        chosen_attempt as chosen_attempt,
        chosen_tasks as chosen_tasks,
        complete_tasks as complete_tasks,
        others as others,
        unsaved as unsaved,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "pieces": ("followed", "kept", "shown", "start_of"),
            "tasks": ("chosen_attempt", "chosen_tasks", "complete_tasks", "others", "unsaved"),
        },
    )
