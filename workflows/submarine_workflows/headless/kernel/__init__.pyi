from .client import HeadlessClient as HeadlessClient
from .hidden_code import (
    WAIT_FOR_JOBS as WAIT_FOR_JOBS,
    JobOutcomes as JobOutcomes,
    ReturnedValues as ReturnedValues,
    end_jobs_code as end_jobs_code,
    return_values_code as return_values_code,
)
from .waiting import KernelWaiter as KernelWaiter, await_optional as await_optional
