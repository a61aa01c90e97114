"""Workflows in notebook cells: save, draw, run and watch them.

Notebooks are accessed only through their front end (``submarine_jobs.frontends``), so
Zeppelin works in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.notebook.azkaban_run import show_execution as show_execution
    from submarine_workflows.notebook.launching import (
        launch as launch,
        show_run as show_run,
        words_of as words_of,
    )
    from submarine_workflows.notebook.live_display import RunWatcher as RunWatcher, Source as Source
    from submarine_workflows.notebook.run_lookup import find_run as find_run
    from submarine_workflows.notebook.workflow_files import (
        SUFFIX as SUFFIX,
        folder_of as folder_of,
        kept_file as kept_file,
        kept_names as kept_names,
        notebook_of as notebook_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "azkaban_run": ("show_execution",),
            "launching": ("launch", "show_run", "words_of"),
            "live_display": ("RunWatcher", "Source"),
            "run_lookup": ("find_run",),
            "workflow_files": ("SUFFIX", "folder_of", "kept_file", "kept_names", "notebook_of"),
        },
    )
