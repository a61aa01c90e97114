"""Azkaban: compile workflows to projects and call the web server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.azkaban.run_ids import (
        RUN_PREFIX as RUN_PREFIX,
        execution_id as execution_id,
        is_azkabans as is_azkabans,
    )
    from submarine_workflows.azkaban.submission import (
        Wishes as Wishes,
        project_name as project_name,
        run_url as run_url,
        submit as submit,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "run_ids": ("RUN_PREFIX", "execution_id", "is_azkabans"),
            "submission": ("Wishes", "project_name", "run_url", "submit"),
        },
    )
