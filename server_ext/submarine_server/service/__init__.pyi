from .job_details import owns as owns
from .job_service import TIMEOUT as TIMEOUT, CallLimiter as CallLimiter, JobService as JobService
from .submissions import (
    Submission as Submission,
    Submissions as Submissions,
    Submitted as Submitted,
    parse_submission as parse_submission,
)
