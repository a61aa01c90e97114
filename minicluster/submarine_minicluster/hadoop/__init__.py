"""Hadoop's jars, configuration files, client commands, daemons and REST interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_minicluster.hadoop.client_commands import (
        write_client_commands as write_client_commands,
    )
    from submarine_minicluster.hadoop.daemons import (
        Daemon as Daemon,
        DaemonRunner as DaemonRunner,
        DaemonStatus as DaemonStatus,
        all_daemons as all_daemons,
    )
    from submarine_minicluster.hadoop.jars import (
        check_disk as check_disk,
        ensure_jars as ensure_jars,
        lib_dir as lib_dir,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "client_commands": ("write_client_commands",),
            "daemons": ("Daemon", "DaemonRunner", "DaemonStatus", "all_daemons"),
            "jars": ("check_disk", "ensure_jars", "lib_dir"),
        },
    )
