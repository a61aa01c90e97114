from .command import parse_run as parse_run, run as run
from .notebook import NotebookRun as NotebookRun
from .option_types import (
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
