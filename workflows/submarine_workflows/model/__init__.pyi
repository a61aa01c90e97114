from .conditions import (
    DEFAULT as DEFAULT,
    MACROS as MACROS,
    Condition as Condition,
    ConditionError as ConditionError,
    ConditionInputs as ConditionInputs,
    read_condition as read_condition,
    tokens_of as tokens_of,
)
from .names import file_name as file_name
from .node_commands import (
    ENVIRONMENT as ENVIRONMENT,
    EXECUTION as EXECUTION,
    ExecutionSettings as ExecutionSettings,
    awaited_url as awaited_url,
    commands_of as commands_of,
    environment_of as environment_of,
    is_notebook as is_notebook,
    join_command as join_command,
    needs_of as needs_of,
    no_option as no_option,
    parameters_in as parameters_in,
    path_of as path_of,
    properties_of as properties_of,
    returns_of as returns_of,
    split_command as split_command,
)
from .schedule import (
    Schedule as Schedule,
    ScheduleError as ScheduleError,
    next_runs as next_runs,
    read_schedule as read_schedule,
    read_timezone as read_timezone,
    zone_of as zone_of,
)
from .serialization import from_json as from_json, write_workflow as write_workflow
from .validation import check as check, number_problem as number_problem
from .workflow import (
    NEED_TIMEOUT as NEED_TIMEOUT,
    Kind as Kind,
    Need as Need,
    Node as Node,
    Problem as Problem,
    Scalar as Scalar,
    Workflow as Workflow,
    WorkflowError as WorkflowError,
)
