from .command_line import command_of_spec as command_of_spec
from .option_values import (
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
from .role_options import (
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
from .roles import (
    TENSORBOARD_HISTORY as TENSORBOARD_HISTORY,
    is_only_tensorboard as is_only_tensorboard,
    needs_program as needs_program,
    requested_roles as requested_roles,
)
from .run_options import (
    RunOptions as RunOptions,
    merge_resources as merge_resources,
    split_args as split_args,
    unique_pairs as unique_pairs,
)
from .spec import check_options as check_options, spec_from_options as spec_from_options
from .unsupported import (
    normalize_option as normalize_option,
    unsupported_option as unsupported_option,
)
