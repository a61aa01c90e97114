from .command import parse_run as parse_run, run as run
from .declared_options import (
    click_type as click_type,
    run_option as run_option,
    together as together,
)
from .notebook import NotebookRun as NotebookRun
