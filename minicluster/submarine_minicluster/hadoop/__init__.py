"""Hadoop's files and interfaces: download, configuration, REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_minicluster.hadoop.config import SUPERUSER as SUPERUSER
    from submarine_minicluster.hadoop.daemons import (
        Daemon as Daemon,
        Runner as Runner,
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
            "config": ("SUPERUSER",),
            "daemons": ("Daemon", "Runner", "all_daemons"),
            "jars": ("check_disk", "ensure_jars", "lib_dir"),
        },
    )
