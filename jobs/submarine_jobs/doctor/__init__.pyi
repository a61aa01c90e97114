from .checks import CHECKS as CHECKS
from .context import DoctorContext as DoctorContext
from .drivers import cuda_warnings as cuda_warnings, remember_drivers as remember_drivers
from .fixes import (
    Fix as Fix,
    chosen_fixes as chosen_fixes,
    fixes_of as fixes_of,
    menu as menu,
    script_of as script_of,
)
from .nodes import (
    COLUMNS as COLUMNS,
    NodeRow as NodeRow,
    choose_nodes as choose_nodes,
    probe_nodes as probe_nodes,
    running_nodes as running_nodes,
    summary as summary,
    table_rows as table_rows,
)
from .result import (
    Check as Check,
    Finding as Finding,
    Result as Result,
    Status as Status,
    error as error,
    ok as ok,
    warning as warning,
)
from .runner import run_checks as run_checks
