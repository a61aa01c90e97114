from .localization import (
    check_sources as check_sources,
    container_names as container_names,
    copy_sources as copy_sources,
    find_copy as find_copy,
    is_on_hdfs as is_on_hdfs,
    localization_errors as localization_errors,
    localized_entries as localized_entries,
)
from .stored_paths import (
    NO_STORE_PATHS as NO_STORE_PATHS,
    StorePaths as StorePaths,
    TaskInput as TaskInput,
    inputs_of_tasks as inputs_of_tasks,
    resolve_store_paths as resolve_store_paths,
    tasks_sharing as tasks_sharing,
    without_user as without_user,
)
