from .checks import CHECKS as CHECKS
from .context import DoctorContext as DoctorContext
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
