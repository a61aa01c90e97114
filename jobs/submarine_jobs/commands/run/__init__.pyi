from .arguments import options_of as options_of
from .command import RunVerb as RunVerb, parse_run as parse_run, run as run
from .declared_options import (
    click_type as click_type,
    run_option as run_option,
    together as together,
)
from .flow import run_job as run_job
from .notebook import NotebookRun as NotebookRun
from .program import Program as Program, find_program as find_program
