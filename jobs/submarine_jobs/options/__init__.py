"""What may be written after ``run``: values parsed and formatted, refusals, the way to a spec.

Pure functions and data: no click, no cluster, no files. The command itself is ``commands.run``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.options.data_pairs import format_param as format_param
    from submarine_jobs.options.from_spec import command_of as command_of
    from submarine_jobs.options.role_options import (
        FLAGS as FLAGS,
        USUAL as USUAL,
        WORDS as WORDS,
        RoleOptions as RoleOptions,
        check_command as check_command,
        check_python_env as check_python_env,
        merge_roles as merge_roles,
        parse_role as parse_role,
    )
    from submarine_jobs.options.role_parts import quoted as quoted
    from submarine_jobs.options.roles_of import (
        BOARD_HISTORY as BOARD_HISTORY,
        asked_roles as asked_roles,
        needs_program as needs_program,
        only_board as only_board,
    )
    from submarine_jobs.options.run_options import (
        RunOptions as RunOptions,
        merge_amounts as merge_amounts,
        split_args as split_args,
        unique as unique,
    )
    from submarine_jobs.options.spec_of import (
        check_options as check_options,
        spec_from_options as spec_from_options,
    )
    from submarine_jobs.options.unsupported import refusal as refusal, spelling as spelling
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "data_pairs": ("format_param",),
            "from_spec": ("command_of",),
            "role_options": (
                "FLAGS",
                "RoleOptions",
                "USUAL",
                "WORDS",
                "check_command",
                "check_python_env",
                "merge_roles",
                "parse_role",
            ),
            "role_parts": ("quoted",),
            "roles_of": ("BOARD_HISTORY", "asked_roles", "needs_program", "only_board"),
            "run_options": ("RunOptions", "merge_amounts", "split_args", "unique"),
            "spec_of": ("check_options", "spec_from_options"),
            "unsupported": ("refusal", "spelling"),
        },
    )
