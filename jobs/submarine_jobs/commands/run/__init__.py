"""The verb ``run``: options, program, checks, dry run, submit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.commands.run.command import parse_run as parse_run, run as run
    from submarine_jobs.commands.run.notebook import NotebookRun as NotebookRun
    from submarine_jobs.commands.run.option_types import (
        ARCHIVE as ARCHIVE,
        ENV as ENV,
        FILE as FILE,
        MEMORY as MEMORY,
        PATIENCE as PATIENCE,
        PYTHON_ENV as PYTHON_ENV,
        QUICKLINK as QUICKLINK,
        count as count,
        together as together,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "command": ("parse_run", "run"),
            "notebook": ("NotebookRun",),
            "option_types": (
                "ARCHIVE",
                "ENV",
                "FILE",
                "MEMORY",
                "PATIENCE",
                "PYTHON_ENV",
                "QUICKLINK",
                "count",
                "together",
            ),
        },
    )
