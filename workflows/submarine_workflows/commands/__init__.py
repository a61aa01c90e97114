"""The verbs of ``submarine workflow``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.commands.azkaban_runs import setting_of as setting_of
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "azkaban_runs": ("setting_of",),
        },
    )
