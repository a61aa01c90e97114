"""Pack the kernel's Python environment and upload it, once per content.

``inventory`` lists the files of the environment, ``archive`` packs them and ``provision`` uploads
the archive. This package does not run in containers. The local backend packs no environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.environments.archive import write_archive as write_archive
    from submarine_jobs.environments.inventory import (
        EnvironmentFile as EnvironmentFile,
        InterpreterLayout as InterpreterLayout,
        current_layout as current_layout,
        fingerprint as fingerprint,
        list_items as list_items,
    )
    from submarine_jobs.environments.provision import (
        Progress as Progress,
        check_env as check_env,
        provide_archive as provide_archive,
        remove_unused as remove_unused,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "archive": ("write_archive",),
            "inventory": (
                "EnvironmentFile",
                "InterpreterLayout",
                "current_layout",
                "fingerprint",
                "list_items",
            ),
            "provision": (
                "Progress",
                "check_env",
                "provide_archive",
                "remove_unused",
            ),
        },
    )
