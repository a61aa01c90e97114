from .base import (
    Backend as Backend,
    FreshTokens as FreshTokens,
    Handle as Handle,
    Observation as Observation,
    Plan as Plan,
    Stage as Stage,
    Submission as Submission,
    make_backend as make_backend,
)
from .job_files import localize as localize
from .overview import (
    GpuHolder as GpuHolder,
    NodeUse as NodeUse,
    Overview as Overview,
    QueueUse as QueueUse,
    located_gpus as located_gpus,
)
