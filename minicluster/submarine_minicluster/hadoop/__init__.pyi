from .client_commands import write_client_commands as write_client_commands
from .daemons import (
    Daemon as Daemon,
    DaemonRunner as DaemonRunner,
    DaemonStatus as DaemonStatus,
    all_daemons as all_daemons,
)
from .jars import check_disk as check_disk, ensure_jars as ensure_jars, lib_dir as lib_dir
