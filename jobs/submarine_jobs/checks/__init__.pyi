from .calls import check_calls as check_calls
from .checkpoints import checkpoint_links as checkpoint_links, expected_rule as expected_rule
from .findings import Finding as Finding, Level as Level
from .imports import (
    has_own_launcher as has_own_launcher,
    imported_modules as imported_modules,
    lacks_module as lacks_module,
    missing_imports as missing_imports,
    project_version as project_version,
    python_builtins as python_builtins,
    uses_data as uses_data,
)
from .interpreter import InterpreterError as InterpreterError
from .program_check import check_program as check_program
from .requirements import required_projects as required_projects
