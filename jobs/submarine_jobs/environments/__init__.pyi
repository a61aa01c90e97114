from .archive import write_archive as write_archive
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
    provide_archive as provide_archive,
    remove_unused as remove_unused,
)
