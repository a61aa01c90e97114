"""Measure a task's devices in a separate thread, so that a hanging driver cannot stop the agent."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple, Sequence

from submarine_runtime.gpus.nvml import LIBRARY, Device, Nvml, Reading

INTERVAL = 2.0
#: Seconds after which a measurement is not reported as the present one.
STALE = 10.0
_NOTHING = Reading(None, None, None)


class DeviceUtilization(NamedTuple):
    """Mean utilization of one device in percent, and for how many seconds it was measured.

    ``memory`` is the most that was in use, in MiB; None: not known.
    """

    device: str
    percent: float
    seconds: float
    memory: float | None = None


class GpuMeter:
    """Readings of ``devices`` (UUIDs), in their order; measuring starts at once.

    Parameters
    ----------
    library
        File name of NVIDIA's management library.
    every
        Seconds between two measurements.
    """

    def __init__(
        self, devices: Sequence[str], library: str = LIBRARY, every: float = INTERVAL
    ) -> None:
        self._names = list(devices)
        self._library = library
        self._every = every
        self._latest: list[Reading] = []
        self._measured = 0.0
        self._sums = [[0.0, 0] for _ in self._names]
        self._memory: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpus", daemon=True)
        self._thread.start()

    def latest(self) -> list[Reading]:
        """Return the newest reading of each device; all None while the driver does not respond."""
        if time.monotonic() - self._measured > STALE or not self._latest:
            return [_NOTHING] * len(self._names)
        return self._latest

    def totals(self) -> tuple[float | None, float | None]:
        """Return mean percent and total MiB of the devices that report them; None if none does."""
        readings = self.latest()
        percents = [reading.percent for reading in readings if reading.percent is not None]
        used = [reading.used for reading in readings if reading.used is not None]
        return (
            round(sum(percents) / len(percents), 1) if percents else None,
            round(sum(used), 1) if used else None,
        )

    def idleness(self) -> list[DeviceUtilization]:
        """Return the mean utilization of each measured device."""
        return [
            DeviceUtilization(name, total / count, count * self._every, self._memory.get(name))
            for name, (total, count) in zip(self._names, self._sums)
            if count
        ]

    def stop(self) -> None:
        """End the thread, without waiting for it."""
        self._stop.set()

    def _run(self) -> None:
        driver = Nvml.open(self._library)
        if driver is None:
            return
        found = {device.uuid: device for device in driver.devices()}
        devices = [found.get(name) for name in self._names]
        while not self._stop.is_set():
            self._note([self._read(driver, device) for device in devices])
            self._stop.wait(self._every)
        driver.close()

    @staticmethod
    def _read(driver: Nvml, device: Device | None) -> Reading:
        return _NOTHING if device is None else driver.reading(device)

    def _note(self, readings: list[Reading]) -> None:
        self._latest, self._measured = readings, time.monotonic()
        for name, sums, reading in zip(self._names, self._sums, readings):
            if reading.used is not None:
                self._memory[name] = max(reading.used, self._memory.get(name, 0.0))
            if reading.percent is not None:
                sums[0] += reading.percent
                sums[1] += 1
