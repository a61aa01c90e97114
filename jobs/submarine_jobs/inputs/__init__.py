"""Files that a job reads: localized files and paths in the job's storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.inputs.localization import (
        bring as bring,
        brought as brought,
        check_sources as check_sources,
        container_names as container_names,
        copy_of as copy_of,
        errors_of as errors_of,
        on_hdfs as on_hdfs,
    )
    from submarine_jobs.inputs.stored_paths import (
        NOTHING as NOTHING,
        Reached as Reached,
        TaskInput as TaskInput,
        inputs_of_tasks as inputs_of_tasks,
        reach as reach,
        tasks_sharing as tasks_sharing,
        without_user as without_user,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "localization": (
                "bring",
                "brought",
                "check_sources",
                "container_names",
                "copy_of",
                "errors_of",
                "on_hdfs",
            ),
            "stored_paths": (
                "NOTHING",
                "Reached",
                "TaskInput",
                "inputs_of_tasks",
                "reach",
                "tasks_sharing",
                "without_user",
            ),
        },
    )
