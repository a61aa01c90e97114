from .certificates import ensure_certificates as ensure_certificates
from .client_commands import write_client_commands as write_client_commands
from .config import (
    HDFS_LOGS as HDFS_LOGS,
    HDFS_TMP as HDFS_TMP,
    MARK as MARK,
    QUEUES as QUEUES,
    SUPERUSER as SUPERUSER,
    ZONE_KEY as ZONE_KEY,
    capacity_scheduler as capacity_scheduler,
    default_fs as default_fs,
    login as login,
    port_names as port_names,
    resourcemanager as resourcemanager,
)
from .config_files import (
    write_configuration as write_configuration,
    write_policy as write_policy,
)
from .daemons import (
    KDC as KDC,
    Daemon as Daemon,
    DaemonRunner as DaemonRunner,
    DaemonStatus as DaemonStatus,
    all_daemons as all_daemons,
)
from .ha_config import HA_KINDS as HA_KINDS
from .jars import (
    cache_dir as cache_dir,
    check_disk as check_disk,
    ensure_jars as ensure_jars,
    ensure_kdc as ensure_kdc,
    lib_dir as lib_dir,
)
from .kerberos import (
    HUB as HUB,
    REALM as REALM,
    USERS as USERS,
    await_keytabs as await_keytabs,
    password as password,
    refresh_tickets as refresh_tickets,
    write_kerberos as write_kerberos,
    write_principals as write_principals,
)
from .rest import (
    Access as Access,
    RestError as RestError,
    SecureWebHdfs as SecureWebHdfs,
    WebHdfs as WebHdfs,
    get_json as get_json,
    http_request as http_request,
)
from .ticket_cache import make_ticket_cache as make_ticket_cache
