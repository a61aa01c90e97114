"""skein's driver: a JVM for each user and cluster configuration, and the calls to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn.driver.class_archive import MasterArchive as MasterArchive
    from submarine_jobs.backends.yarn.driver.classpath import (
        java_home as java_home,
        java_version as java_version,
        yarn_command as yarn_command,
    )
    from submarine_jobs.backends.yarn.driver.driver import (
        Driver as Driver,
        stop_driver as stop_driver,
    )
    from submarine_jobs.backends.yarn.driver.process import stop_directory as stop_directory
    from submarine_jobs.backends.yarn.driver.skein_calls import (
        Channel as Channel,
        DriverTimeoutError as DriverTimeoutError,
        DriverUnreachableError as DriverUnreachableError,
        skein_jar as skein_jar,
    )
    from submarine_jobs.backends.yarn.driver.subprocess_driver import (
        SubprocessDriver as SubprocessDriver,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "class_archive": ("MasterArchive",),
            "classpath": ("java_home", "java_version", "yarn_command"),
            "driver": ("Driver", "stop_driver"),
            "process": ("stop_directory",),
            "skein_calls": ("Channel", "DriverTimeoutError", "DriverUnreachableError", "skein_jar"),
            "subprocess_driver": ("SubprocessDriver",),
        },
    )
