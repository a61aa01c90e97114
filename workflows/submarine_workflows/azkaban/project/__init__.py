"""The project archive that is uploaded to Azkaban."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.azkaban.project.archive import Project as Project, digest as digest
    from submarine_workflows.azkaban.project.command_values import (
        VERB as VERB,
        with_values as with_values,
    )
    from submarine_workflows.azkaban.project.compiler import unfit_value as unfit_value
    from submarine_workflows.azkaban.project.secrets import looks_secret as looks_secret
    from submarine_workflows.azkaban.project.source import (
        executor_setting as executor_setting,
        has_trigger as has_trigger,
        project_of as project_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "archive": ("Project", "digest"),
            "command_values": ("VERB", "with_values"),
            "compiler": ("unfit_value",),
            "secrets": ("looks_secret",),
            "source": ("executor_setting", "has_trigger", "project_of"),
        },
    )
