"""Files that a job reads: localized files and paths in the job's storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.inputs.localization import (
        check_sources as check_sources,
        container_names as container_names,
        copy_sources as copy_sources,
        find_copy as find_copy,
        is_on_hdfs as is_on_hdfs,
        localization_errors as localization_errors,
        localized_entries as localized_entries,
    )
    from submarine_jobs.inputs.stored_paths import (
        NO_STORE_PATHS as NO_STORE_PATHS,
        StorePaths as StorePaths,
        TaskInput as TaskInput,
        inputs_of_tasks as inputs_of_tasks,
        resolve_store_paths as resolve_store_paths,
        tasks_sharing as tasks_sharing,
        without_user as without_user,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "localization": (
                "check_sources",
                "container_names",
                "copy_sources",
                "find_copy",
                "is_on_hdfs",
                "localization_errors",
                "localized_entries",
            ),
            "stored_paths": (
                "NO_STORE_PATHS",
                "StorePaths",
                "TaskInput",
                "inputs_of_tasks",
                "resolve_store_paths",
                "tasks_sharing",
                "without_user",
            ),
        },
    )
