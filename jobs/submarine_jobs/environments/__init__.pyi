from .archive import write_archive as write_archive
from .cache import (
    environment_names as environment_names,
    remove_unused as remove_unused,
)
from .inventory import (
    EnvironmentFile as EnvironmentFile,
    InterpreterLayout as InterpreterLayout,
    current_layout as current_layout,
    fingerprint as fingerprint,
    list_items as list_items,
)
from .provision import (
    Progress as Progress,
    check_env as check_env,
    provide_environment as provide_environment,
)
