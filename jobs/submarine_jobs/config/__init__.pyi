from .backend_registry import (
    backend_names as backend_names,
    check_backend_name as check_backend_name,
    load_backend as load_backend,
)
from .file import (
    CONFIG_FILE as CONFIG_FILE,
    KNOWN_SETTINGS as KNOWN_SETTINGS,
    PROFILE_KEYS as PROFILE_KEYS,
    SITE_FILE as SITE_FILE,
    SITE_VARIABLE as SITE_VARIABLE,
    ConfigFile as ConfigFile,
    project_file as project_file,
    read_file as read_file,
    read_site_file as read_site_file,
)
from .file_safety import (
    check_file as check_file,
    check_private as check_private,
    make_private as make_private,
)
from .jupyter_server import (
    back_links as back_links,
    server_url as server_url,
    tensorboard_path as tensorboard_path,
)
from .loader import (
    OWN_VARIABLES as OWN_VARIABLES,
    Config as Config,
    SectionValue as SectionValue,
    check_locked as check_locked,
    load_config as load_config,
    load_section as load_section,
    user_section as user_section,
)
from .locks import Locks as Locks
from .project_trust import (
    UntrustedConfigError as UntrustedConfigError,
    confirmed_keys as confirmed_keys,
    forget as forget,
    is_trusted as is_trusted,
    summary as summary,
    trust as trust,
)
from .values import hdfs_wait as hdfs_wait, python_of as python_of
