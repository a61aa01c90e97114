from .archive import write_archive as write_archive
from .cache import (
    CachedEnvironment as CachedEnvironment,
    EnvironmentCache as EnvironmentCache,
    environment_names as environment_names,
    keys_of as keys_of,
    remove_unused as remove_unused,
    unused as unused,
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
    ProvidedEnvironment as ProvidedEnvironment,
    check_env as check_env,
    find_provided as find_provided,
    provide_environment as provide_environment,
    write_environment as write_environment,
)
from .shared import check_target as check_target, publish_archive as publish_archive
