from .job_status import JobStatus as JobStatus
from .journal import SEATS_FILE as SEATS_FILE, Journal as Journal, is_complete as is_complete
