"""The interpreter process that Zeppelin starts: start, thrift methods, log, shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.service.process import main as main
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "process": ("main",),
        },
    )
