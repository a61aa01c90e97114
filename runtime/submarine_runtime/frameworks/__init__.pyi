from .ranks import (
    EVALUATOR as EVALUATOR,
    NOT_COLLECTIVE_ROLES as NOT_COLLECTIVE_ROLES,
    crew_of as crew_of,
    first_rank as first_rank,
    world_size as world_size,
)
from .registry import (
    KNOWN as KNOWN,
    Helper as Helper,
    Setup as Setup,
    complaint_of as complaint_of,
    framework_of as framework_of,
    not_collective_sentence as not_collective_sentence,
    policy_of as policy_of,
    process_count as process_count,
    setup as setup,
    sharing_tasks as sharing_tasks,
    trait as trait,
)
