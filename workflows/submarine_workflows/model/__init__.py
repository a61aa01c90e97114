"""Workflows as data: nodes, parameters, conditions, schedules, validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.model.command_line import (
        join_command as join_command,
        split_command as split_command,
    )
    from submarine_workflows.model.conditions import (
        DEFAULT as DEFAULT,
        MACROS as MACROS,
        Condition as Condition,
        ConditionError as ConditionError,
        Facts as Facts,
        read_condition as read_condition,
        tokens_of as tokens_of,
    )
    from submarine_workflows.model.errors import Problem as Problem, WorkflowError as WorkflowError
    from submarine_workflows.model.names import file_name as file_name
    from submarine_workflows.model.node_commands import (
        ENVIRONMENT as ENVIRONMENT,
        EXECUTION as EXECUTION,
        Setting as Setting,
        commands_of as commands_of,
        data_waited_for as data_waited_for,
        environment_of as environment_of,
        is_notebook as is_notebook,
        needs_of as needs_of,
        no_option as no_option,
        parameters_in as parameters_in,
        path_of as path_of,
        properties_of as properties_of,
        returns_of as returns_of,
    )
    from submarine_workflows.model.schedule import (
        Schedule as Schedule,
        ScheduleError as ScheduleError,
        next_runs as next_runs,
        read_schedule as read_schedule,
        read_timezone as read_timezone,
        zone_of as zone_of,
    )
    from submarine_workflows.model.serialization import (
        from_json as from_json,
        write_workflow as write_workflow,
    )
    from submarine_workflows.model.validation import (
        check as check,
        number_problem as number_problem,
    )
    from submarine_workflows.model.workflow import (
        NEED_TIMEOUT as NEED_TIMEOUT,
        Kind as Kind,
        Need as Need,
        Node as Node,
        Scalar as Scalar,
        Workflow as Workflow,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "command_line": ("join_command", "split_command"),
            "conditions": (
                "Condition",
                "ConditionError",
                "DEFAULT",
                "Facts",
                "MACROS",
                "read_condition",
                "tokens_of",
            ),
            "errors": ("Problem", "WorkflowError"),
            "names": ("file_name",),
            "node_commands": (
                "ENVIRONMENT",
                "EXECUTION",
                "Setting",
                "commands_of",
                "data_waited_for",
                "environment_of",
                "is_notebook",
                "needs_of",
                "no_option",
                "parameters_in",
                "path_of",
                "properties_of",
                "returns_of",
            ),
            "schedule": (
                "Schedule",
                "ScheduleError",
                "next_runs",
                "read_schedule",
                "read_timezone",
                "zone_of",
            ),
            "serialization": ("from_json", "write_workflow"),
            "validation": ("check", "number_problem"),
            "workflow": ("Kind", "NEED_TIMEOUT", "Need", "Node", "Scalar", "Workflow"),
        },
    )
