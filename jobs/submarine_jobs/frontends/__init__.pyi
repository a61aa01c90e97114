from .base import Frontend as Frontend
from .cell_frontend import MAX_TEXT as MAX_TEXT, CellFrontend as CellFrontend
from .job_displays import (
    JobCard as JobCard,
    JobDisplays as JobDisplays,
    LiveCards as LiveCards,
    MimeBundle as MimeBundle,
    Publisher as Publisher,
)
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
