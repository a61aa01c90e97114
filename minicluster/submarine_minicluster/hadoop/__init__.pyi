from .client_commands import write_client_commands as write_client_commands
from .config import (
    HDFS_LOGS as HDFS_LOGS,
    HDFS_TMP as HDFS_TMP,
    HOST as HOST,
    MARK as MARK,
    QUEUES as QUEUES,
    SUPERUSER as SUPERUSER,
    capacity_scheduler as capacity_scheduler,
    login as login,
    port_names as port_names,
    resourcemanager as resourcemanager,
    write_configuration as write_configuration,
    write_policy as write_policy,
)
from .daemons import (
    Daemon as Daemon,
    DaemonRunner as DaemonRunner,
    DaemonStatus as DaemonStatus,
    all_daemons as all_daemons,
)
from .jars import (
    cache_dir as cache_dir,
    check_disk as check_disk,
    ensure_jars as ensure_jars,
    lib_dir as lib_dir,
)
from .rest import (
    RestError as RestError,
    WebHdfs as WebHdfs,
    get_json as get_json,
    http_request as http_request,
)
