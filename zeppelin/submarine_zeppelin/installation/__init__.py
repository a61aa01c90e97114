"""Installation of the interpreter group in Zeppelin: install, check, uninstall."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.installation.checks import check_installation as check_installation
    from submarine_zeppelin.installation.installer import (
        find_installation as find_installation,
        install as install,
        uninstall as uninstall,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "checks": ("check_installation",),
            "installer": ("find_installation", "install", "uninstall"),
        },
    )
