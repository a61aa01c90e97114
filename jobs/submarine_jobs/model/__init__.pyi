from submarine_runtime.protocol.spec import (
    KERNEL_ROLE as KERNEL_ROLE,
    KINDS as KINDS,
    NOTEBOOK_ROLE as NOTEBOOK_ROLE,
    TENSORBOARD_COMMAND as TENSORBOARD_COMMAND,
    JobSpec as JobSpec,
    Localization as Localization,
    NamedInput as NamedInput,
    NamedOutput as NamedOutput,
    Resources as Resources,
    Role as Role,
    SparkRequest as SparkRequest,
    default_kind as default_kind,
    is_tensorboard as is_tensorboard,
)

from .container import (
    container_directory as container_directory,
    use_container_cache as use_container_cache,
)
from .gang import resolve_roles as resolve_roles
from .headless_settings import (
    HEADLESS_ATTENDED as HEADLESS_ATTENDED,
    HEADLESS_VARIABLE as HEADLESS_VARIABLE,
    Headless as Headless,
)
from .job_view import JobView as JobView
from .placeholders import (
    FRAME_INPUT as FRAME_INPUT,
    fetched_input as fetched_input,
    fill_spec as fill_spec,
)
from .profile import (
    Profile as Profile,
    default_state_dir as default_state_dir,
    hadoop_user as hadoop_user,
    primary_of as primary_of,
)
from .python_environment import (
    ARCHIVE_SUFFIXES as ARCHIVE_SUFFIXES,
    BUILT_KINDS as BUILT_KINDS,
    ENVIRONMENT_KINDS as ENVIRONMENT_KINDS,
    PLAIN_KINDS as PLAIN_KINDS,
    PackedEnvironment as PackedEnvironment,
    PythonEnv as PythonEnv,
    check_image_name as check_image_name,
    parse_python_env as parse_python_env,
)
from .quantities import (
    format_duration as format_duration,
    format_memory as format_memory,
    format_timeout as format_timeout,
    parse_count as parse_count,
    parse_duration as parse_duration,
    parse_memory as parse_memory,
    parse_resources as parse_resources,
    parse_timeout as parse_timeout,
)
from .record_reader import (
    InvalidRecordError as InvalidRecordError,
    prepare_reader as prepare_reader,
    read_part as read_part,
    read_record as read_record,
)
from .sharing import (
    Sharing as Sharing,
    check_user_name as check_user_name,
    format_share as format_share,
    parse_share as parse_share,
)
from .tasks import (
    MAX_MERGED_TASKS as MAX_MERGED_TASKS,
    ONLY_TASK as ONLY_TASK,
    chief_of as chief_of,
    chief_of_record as chief_of_record,
    failed_task as failed_task,
    find_task as find_task,
    format_task_ranges as format_task_ranges,
    most_relevant_task as most_relevant_task,
    select_tasks as select_tasks,
    task_names as task_names,
)
from .workflow_origin import (
    NODE_VARIABLE as NODE_VARIABLE,
    RUN_VARIABLE as RUN_VARIABLE,
    TAGS_VARIABLE as TAGS_VARIABLE,
    WORKFLOW_VARIABLE as WORKFLOW_VARIABLE,
    WorkflowOrigin as WorkflowOrigin,
    in_workflow_node as in_workflow_node,
)
