from .notebook_frontend import (
    NotebookFrontend as NotebookFrontend,
    OutputLimitReached as OutputLimitReached,
)
from .outcomes import WaitInterrupted as WaitInterrupted, show_outcome as show_outcome
from .tracebacks import (
    job_failed as job_failed,
    sentence_lines as sentence_lines,
    without_traceback as without_traceback,
)
