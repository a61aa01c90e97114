"""GPUs of a node: detection, locks, claims and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.gpus.claims import (
        GpuClaim as GpuClaim,
        NoDeviceError as NoDeviceError,
        claim_gpus as claim_gpus,
    )
    from submarine_runtime.gpus.meter import (
        DeviceUtilization as DeviceUtilization,
        GpuMeter as GpuMeter,
    )
    from submarine_runtime.gpus.nvml import Reading as Reading
    from submarine_runtime.gpus.visibility import (
        device_numbers as device_numbers,
        visible_devices as visible_devices,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "claims": ("GpuClaim", "NoDeviceError", "claim_gpus"),
            "meter": ("DeviceUtilization", "GpuMeter"),
            "nvml": ("Reading",),
            "visibility": ("device_numbers", "visible_devices"),
        },
    )
