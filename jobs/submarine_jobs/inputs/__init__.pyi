from .advice import FreeDisk as FreeDisk, TaskInput as TaskInput, mode_advice as mode_advice
from .huggingface import (
    HubSnapshot as HubSnapshot,
    fetch_snapshot as fetch_snapshot,
    find_snapshot as find_snapshot,
)
from .localization import (
    check_sources as check_sources,
    container_names as container_names,
    copy_sources as copy_sources,
    find_copy as find_copy,
    is_on_hdfs as is_on_hdfs,
    localization_errors as localization_errors,
    localized_entries as localized_entries,
)
from .locations import (
    HUB as HUB,
    REMOTE as REMOTE,
    FileSystems as FileSystems,
    scheme_of as scheme_of,
    without_user as without_user,
)
from .output_targets import PREDICTIONS as PREDICTIONS
from .stored_paths import (
    NO_STORE_PATHS as NO_STORE_PATHS,
    StorePaths as StorePaths,
    inputs_of_tasks as inputs_of_tasks,
    listing_file as listing_file,
    resolve_store_paths as resolve_store_paths,
    tasks_sharing as tasks_sharing,
    with_commits as with_commits,
)
