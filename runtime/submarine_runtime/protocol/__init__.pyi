from .agent_config import (
    CHECKSUMMED as CHECKSUMMED,
    COORDINATOR_VARIABLE as COORDINATOR_VARIABLE,
    NO_SPACE_CODE as NO_SPACE_CODE,
    SEAT_VARIABLE as SEAT_VARIABLE,
    STORE_UNAVAILABLE_CODE as STORE_UNAVAILABLE_CODE,
    TASK_VARIABLE as TASK_VARIABLE,
    AgentConfig as AgentConfig,
    InputSource as InputSource,
    JobStore as JobStore,
    LogServer as LogServer,
)
from .configuration_files import read_configuration as read_configuration
from .coordinator_config import (
    RESTORE_POLICIES as RESTORE_POLICIES,
    SUCCESS_POLICIES as SUCCESS_POLICIES,
    CoordinatorConfig as CoordinatorConfig,
)
from .environment_layers import (
    EnvironmentArchive as EnvironmentArchive,
    EnvironmentLayers as EnvironmentLayers,
)
from .hdfs_clients import (
    HdfsClients as HdfsClients,
    core_settings as core_settings,
    hdfs_settings as hdfs_settings,
)
from .link import (
    CHIEF_ROLES as CHIEF_ROLES,
    LINK_PROTOCOL as LINK_PROTOCOL,
    MAX_LINK_LINE as MAX_LINK_LINE,
    MAX_TASKS as MAX_TASKS,
    Member as Member,
    chief_of as chief_of,
    expected_members as expected_members,
)
from .link_validation import (
    check_agent_line as check_agent_line,
    check_order as check_order,
    json_safe as json_safe,
    read_link_line as read_link_line,
)
from .log_cursor import (
    LogCursor as LogCursor,
    LogKey as LogKey,
    LogLine as LogLine,
    attempt_order as attempt_order,
    parse_log_key as parse_log_key,
    read_log_line as read_log_line,
)
from .quicklinks import fixed_links as fixed_links, resolve_links as resolve_links
from .reasons import EndReason as EndReason, cancel_sentence as cancel_sentence
from .record import (
    LOCALIZED as LOCALIZED,
    PHASES as PHASES,
    Event as Event,
    Failure as Failure,
    JobRecord as JobRecord,
    Output as Output,
    Phase as Phase,
    SavedOutput as SavedOutput,
    TaskRecord as TaskRecord,
    TracebackFrame as TracebackFrame,
)
from .serialization import (
    PROTOCOL_VERSION as PROTOCOL_VERSION,
    FieldError as FieldError,
    from_json as from_json,
    to_json as to_json,
)
from .sourcemap import (
    MAP_PATH as MAP_PATH,
    NOTEBOOK_PATH as NOTEBOOK_PATH,
    CellSegment as CellSegment,
    SourceMap as SourceMap,
)
from .spec import (
    APPEND_RUN as APPEND_RUN,
    GPU_TOPOLOGIES as GPU_TOPOLOGIES,
    IDLE_GPU_ACTIONS as IDLE_GPU_ACTIONS,
    MODEL_OUTPUT as MODEL_OUTPUT,
    OVERWRITE as OVERWRITE,
    STALL_ACTIONS as STALL_ACTIONS,
    TENSORBOARD_COMMAND as TENSORBOARD_COMMAND,
    IdleLimit as IdleLimit,
    JobSpec as JobSpec,
    NamedInput as NamedInput,
    NamedOutput as NamedOutput,
    Resources as Resources,
    Role as Role,
    SparkRequest as SparkRequest,
    has_secrets as has_secrets,
    is_tensorboard as is_tensorboard,
)
from .states import TRANSITIONS as TRANSITIONS, State as State, may_follow as may_follow
