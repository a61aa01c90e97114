"""Measurements of the running program: processes, devices, progress and training scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.measurement.measurement import Measurement as Measurement
    from submarine_runtime.agent.measurement.samples import (
        SampleLog as SampleLog,
        sample_shipper as sample_shipper,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "measurement": ("Measurement",),
            "samples": ("SampleLog", "sample_shipper"),
        },
    )
