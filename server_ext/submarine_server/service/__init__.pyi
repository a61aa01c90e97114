from .job_details import owns as owns
from .job_service import TIMEOUT as TIMEOUT, CallLimiter as CallLimiter, JobService as JobService
