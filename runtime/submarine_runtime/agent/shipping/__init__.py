"""Logs and events on their way to the job directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.shipping.log_files import LogFiles as LogFiles
    from submarine_runtime.agent.shipping.log_shipper import (
        LogShipper as LogShipper,
        log_shippers as log_shippers,
    )
    from submarine_runtime.agent.shipping.publisher import Publisher as Publisher
    from submarine_runtime.agent.shipping.thread import LogShippingThread as LogShippingThread
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "log_files": ("LogFiles",),
            "log_shipper": ("LogShipper", "log_shippers"),
            "publisher": ("Publisher",),
            "thread": ("LogShippingThread",),
        },
    )
