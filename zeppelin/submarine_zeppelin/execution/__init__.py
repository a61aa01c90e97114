"""Execute paragraphs: queues, state, cancellation, progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.execution.delivery import Delivery as Delivery
    from submarine_zeppelin.execution.execution import UNKNOWN as UNKNOWN, Execution as Execution
    from submarine_zeppelin.execution.executions import Executions as Executions
    from submarine_zeppelin.execution.output_writer import Outputs as Outputs
    from submarine_zeppelin.execution.sessions import (
        NotCreatedError as NotCreatedError,
        Sessions as Sessions,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "delivery": ("Delivery",),
            "execution": ("Execution", "UNKNOWN"),
            "executions": ("Executions",),
            "output_writer": ("Outputs",),
            "sessions": ("NotCreatedError", "Sessions"),
        },
    )
