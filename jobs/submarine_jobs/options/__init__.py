"""Options of ``run``: parse and format values, validate them, and build a spec.

``commands.run`` implements the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.options.command_line import command_of_spec as command_of_spec
    from submarine_jobs.options.option_values import (
        format_param as format_param,
        parse_archive as parse_archive,
        parse_conf as parse_conf,
        parse_env as parse_env,
        parse_file as parse_file,
        parse_fraction as parse_fraction,
        parse_input as parse_input,
        parse_localization as parse_localization,
        parse_param as parse_param,
        parse_quicklink as parse_quicklink,
    )
    from submarine_jobs.options.role_options import (
        ROLE_FLAGS as ROLE_FLAGS,
        ROLE_WORDS as ROLE_WORDS,
        STANDARD_ROLES as STANDARD_ROLES,
        RoleOptions as RoleOptions,
        check_command as check_command,
        check_python_env as check_python_env,
        merge_roles as merge_roles,
        parse_role as parse_role,
        quote_value as quote_value,
    )
    from submarine_jobs.options.roles import (
        TENSORBOARD_HISTORY as TENSORBOARD_HISTORY,
        is_only_tensorboard as is_only_tensorboard,
        needs_program as needs_program,
        requested_roles as requested_roles,
    )
    from submarine_jobs.options.run_options import (
        RunOptions as RunOptions,
        merge_resources as merge_resources,
        split_args as split_args,
        unique_pairs as unique_pairs,
    )
    from submarine_jobs.options.spec import (
        check_options as check_options,
        spec_from_options as spec_from_options,
    )
    from submarine_jobs.options.unsupported import (
        normalize_option as normalize_option,
        unsupported_option as unsupported_option,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "command_line": ("command_of_spec",),
            "option_values": (
                "format_param",
                "parse_archive",
                "parse_conf",
                "parse_env",
                "parse_file",
                "parse_fraction",
                "parse_input",
                "parse_localization",
                "parse_param",
                "parse_quicklink",
            ),
            "role_options": (
                "ROLE_FLAGS",
                "ROLE_WORDS",
                "RoleOptions",
                "STANDARD_ROLES",
                "check_command",
                "check_python_env",
                "merge_roles",
                "parse_role",
                "quote_value",
            ),
            "roles": (
                "TENSORBOARD_HISTORY",
                "is_only_tensorboard",
                "needs_program",
                "requested_roles",
            ),
            "run_options": (
                "RunOptions",
                "merge_resources",
                "split_args",
                "unique_pairs",
            ),
            "spec": (
                "check_options",
                "spec_from_options",
            ),
            "unsupported": (
                "normalize_option",
                "unsupported_option",
            ),
        },
    )
