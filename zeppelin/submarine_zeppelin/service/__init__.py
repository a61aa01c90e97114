"""The thrift service that Zeppelin calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.service.handler import FORM_TYPE as FORM_TYPE, Handler as Handler
    from submarine_zeppelin.service.process import main as main
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "handler": ("FORM_TYPE", "Handler"),
            "process": ("main",),
        },
    )
