from .class_archive import (
    ARCHIVE_DIRECTORY as ARCHIVE_DIRECTORY,
    MasterArchive as MasterArchive,
)
from .classpath import (
    java_home as java_home,
    java_version as java_version,
    yarn_command as yarn_command,
)
from .driver import Driver as Driver, stop_driver as stop_driver
from .master_jar import (
    CHANGES as CHANGES,
    FIRST_PAGE as FIRST_PAGE,
    make_master_jar as make_master_jar,
    with_first_page as with_first_page,
    with_gpu_resource as with_gpu_resource,
    with_repaired_master as with_repaired_master,
)
from .process import read_running as read_running, stop_directory as stop_directory
from .refusals import (
    NeverFitsError as NeverFitsError,
    modify_acl_error as modify_acl_error,
    translate as translate,
)
from .skein_calls import (
    Channel as Channel,
    DriverChannel as DriverChannel,
    DriverTimeoutError as DriverTimeoutError,
    DriverUnreachableError as DriverUnreachableError,
    skein_jar as skein_jar,
)
from .subprocess_driver import SubprocessDriver as SubprocessDriver
from .tickets import driver_tickets as driver_tickets
