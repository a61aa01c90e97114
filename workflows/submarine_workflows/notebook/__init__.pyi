from .azkaban_run import show_execution as show_execution
from .launching import arguments_of as arguments_of, launch as launch, show_run as show_run
from .live_display import RunWatcher as RunWatcher, Source as Source
from .run_lookup import find_run as find_run
from .workflow_files import (
    SUFFIX as SUFFIX,
    folder_of as folder_of,
    notebook_of as notebook_of,
    saved_file as saved_file,
    saved_names as saved_names,
)
