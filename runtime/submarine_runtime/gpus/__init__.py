"""GPUs of a node: detection, locks, claims and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.gpus.claims import (
        Claim as Claim,
        NoDeviceError as NoDeviceError,
        claim as claim,
    )
    from submarine_runtime.gpus.meter import GpuMeter as GpuMeter, Idleness as Idleness
    from submarine_runtime.gpus.nvml import Reading as Reading
    from submarine_runtime.gpus.visibility import device_numbers as device_numbers, look as look
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "claims": ("Claim", "NoDeviceError", "claim"),
            "meter": ("GpuMeter", "Idleness"),
            "nvml": ("Reading",),
            "visibility": ("device_numbers", "look"),
        },
    )
