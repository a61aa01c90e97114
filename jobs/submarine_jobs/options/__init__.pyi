from .command_line import command_of_spec as command_of_spec
from .declaration import (
    TEXT as TEXT,
    Flag as Flag,
    ListOption as ListOption,
    Option as Option,
    ValueType as ValueType,
    unique_pairs as unique_pairs,
)
from .job_description import description_words as description_words
from .option_values import (
    PYTHON_ENV as PYTHON_ENV,
    TIMEOUT as TIMEOUT,
    count as count,
    format_input as format_input,
    format_param as format_param,
    format_secret as format_secret,
    parse_input as parse_input,
    parse_save_output as parse_save_output,
    parse_secret as parse_secret,
)
from .role_options import (
    ROLE_OPTIONS as ROLE_OPTIONS,
    STANDARD_ROLES as STANDARD_ROLES,
    RoleOptions as RoleOptions,
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
    RUN_OPTIONS as RUN_OPTIONS,
    RunOptions as RunOptions,
    merge_resources as merge_resources,
)
from .spec import (
    check_idle_gpu as check_idle_gpu,
    check_options as check_options,
    spec_from_options as spec_from_options,
)
from .unsupported import (
    normalize_option as normalize_option,
    unsupported_option as unsupported_option,
)
