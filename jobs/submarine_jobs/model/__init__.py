"""Data of a job without I/O: spec, roles, profile, view, quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.model.gang import (
        gang_of as gang_of,
        kind_of as kind_of,
        with_extra_roles as with_extra_roles,
    )
    from submarine_jobs.model.headless_settings import (
        ATTENDED as ATTENDED,
        VARIABLE as VARIABLE,
        Headless as Headless,
    )
    from submarine_jobs.model.job_view import JobView as JobView
    from submarine_jobs.model.placeholders import (
        fetched_input as fetched_input,
        fill_spec as fill_spec,
    )
    from submarine_jobs.model.profile import (
        Profile as Profile,
        default_state_dir as default_state_dir,
        hadoop_user as hadoop_user,
    )
    from submarine_jobs.model.python_environment import (
        DIRECTORY as DIRECTORY,
        ENVIRONMENT_KINDS as ENVIRONMENT_KINDS,
        SUFFIXES as SUFFIXES,
        PythonEnv as PythonEnv,
        checked_image as checked_image,
        parse_python_env as parse_python_env,
    )
    from submarine_jobs.model.quantities import (
        format_duration as format_duration,
        format_memory as format_memory,
        format_patience as format_patience,
        parse_count as parse_count,
        parse_duration as parse_duration,
        parse_memory as parse_memory,
        parse_patience as parse_patience,
        parse_resources as parse_resources,
    )
    from submarine_jobs.model.roles import (
        BOARD_COMMAND as BOARD_COMMAND,
        KERNEL_ROLE as KERNEL_ROLE,
        KINDS as KINDS,
        NOTEBOOK_ROLE as NOTEBOOK_ROLE,
        Resources as Resources,
        Role as Role,
        is_board as is_board,
        usual_kind as usual_kind,
    )
    from submarine_jobs.model.spec import (
        JobSpec as JobSpec,
        Localization as Localization,
        NamedInput as NamedInput,
    )
    from submarine_jobs.model.tasks import (
        MAX_TOGETHER as MAX_TOGETHER,
        ONLY_TASK as ONLY_TASK,
        chief_in as chief_in,
        choose as choose,
        failed_task as failed_task,
        ranges as ranges,
        task_of as task_of,
        telling_task as telling_task,
    )
    from submarine_jobs.model.workflow_origin import (
        NODE as NODE,
        RUN as RUN,
        TAGS as TAGS,
        WORKFLOW as WORKFLOW,
        Origin as Origin,
        of_a_node as of_a_node,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "gang": ("gang_of", "kind_of", "with_extra_roles"),
            "headless_settings": ("ATTENDED", "Headless", "VARIABLE"),
            "job_view": ("JobView",),
            "placeholders": ("fetched_input", "fill_spec"),
            "profile": ("Profile", "default_state_dir", "hadoop_user"),
            "python_environment": (
                "DIRECTORY",
                "ENVIRONMENT_KINDS",
                "PythonEnv",
                "SUFFIXES",
                "checked_image",
                "parse_python_env",
            ),
            "quantities": (
                "format_duration",
                "format_memory",
                "format_patience",
                "parse_count",
                "parse_duration",
                "parse_memory",
                "parse_patience",
                "parse_resources",
            ),
            "roles": (
                "BOARD_COMMAND",
                "KERNEL_ROLE",
                "KINDS",
                "NOTEBOOK_ROLE",
                "Resources",
                "Role",
                "is_board",
                "usual_kind",
            ),
            "spec": ("JobSpec", "Localization", "NamedInput"),
            "tasks": (
                "MAX_TOGETHER",
                "ONLY_TASK",
                "chief_in",
                "choose",
                "failed_task",
                "ranges",
                "task_of",
                "telling_task",
            ),
            "workflow_origin": ("NODE", "Origin", "RUN", "TAGS", "WORKFLOW", "of_a_node"),
        },
    )
