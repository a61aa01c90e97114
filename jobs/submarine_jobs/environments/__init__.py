"""The Python environment of a job's program: on the nodes already, or brought along as an archive.

``python_env`` reads what ``--python-env`` says, ``inventory`` lists what the kernel's own
environment consists of, ``archive`` packs it, ``provide`` sees to it that it is on the cluster,
once per content. Nothing here runs in a container, and nothing is packed for the local backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.environments.archive import write_archive as write_archive
    from submarine_jobs.environments.inventory import (
        Item as Item,
        Layout as Layout,
        fingerprint as fingerprint,
        items_of as items_of,
        this_layout as this_layout,
    )
    from submarine_jobs.environments.provision import (
        Progress as Progress,
        check_env as check_env,
        provide as provide,
        remove_unused as remove_unused,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "archive": ("write_archive",),
            "inventory": ("Item", "Layout", "fingerprint", "items_of", "this_layout"),
            "provision": ("Progress", "check_env", "provide", "remove_unused"),
        },
    )
