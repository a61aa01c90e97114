from .lost_peers import CONSEQUENCE as CONSEQUENCE, follows_from_lost_peer as follows_from_lost_peer
from .ranks import (
    EVALUATOR as EVALUATOR,
    NOT_COLLECTIVE_ROLES as NOT_COLLECTIVE_ROLES,
    collective_tasks as collective_tasks,
    first_rank as first_rank,
    world_size as world_size,
)
from .registry import (
    KNOWN as KNOWN,
    Helper as Helper,
    Setup as Setup,
    deciding_import as deciding_import,
    framework_of as framework_of,
    framework_projects as framework_projects,
    must_join as must_join,
    not_collective_sentence as not_collective_sentence,
    policy_of as policy_of,
    process_count as process_count,
    role_error_of as role_error_of,
    setting_of as setting_of,
    setup as setup,
    sharding_tasks as sharding_tasks,
)
