from .base import Frontend as Frontend
from .outcome import (
    CLUSTER as CLUSTER,
    INTERRUPTED as INTERRUPTED,
    JOB_FAILED as JOB_FAILED,
    SUCCESS as SUCCESS,
    USAGE as USAGE,
    Outcome as Outcome,
    to_json as to_json,
)
from .submit_progress import ASKING as ASKING, WAITING as WAITING, SubmitProgress as SubmitProgress
from .terminal import StatusLine as StatusLine, TerminalFrontend as TerminalFrontend
