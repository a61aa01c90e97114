"""Resources of this machine: processes, ports, locks and the Java runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_minicluster.machine.files import replace_file as replace_file
    from submarine_minicluster.machine.java import Java as Java, find_java as find_java
    from submarine_minicluster.machine.locking import file_lock as file_lock
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "files": ("replace_file",),
            "java": ("Java", "find_java"),
            "locking": ("file_lock",),
        },
    )
