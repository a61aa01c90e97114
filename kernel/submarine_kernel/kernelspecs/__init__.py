"""Kernelspecs: ``submarine kernel install|list|check|uninstall``, ``kernel.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_kernel.kernelspecs.settings import read_settings as read_settings
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "settings": ("read_settings",),
        },
    )
