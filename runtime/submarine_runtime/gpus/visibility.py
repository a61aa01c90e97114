"""Detect the GPUs that a container sees, by the driver or by the device files.

``claims`` chooses and claims devices.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field, replace
from typing import Mapping, Sequence

#: Path of a device file, without its number.
FILE = "/dev/nvidia"
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Seconds that a driver may take to respond; it may have to wake its devices.
DRIVER_PATIENCE = 20.0


@dataclass
class VisibleDevices:
    """The GPUs that are visible in this container.

    Parameters
    ----------
    devices
        Identifiers.
    busy
        Identifiers of devices on which a process computes.
    denied
        Number of devices that this container may not use.
    nvml
        Whether the driver reported this.
    files
        Device files of whole GPUs, by identifier.
    near
        Proximity of pairs of GPUs, see ``Nvml.proximity``.
    """

    devices: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    denied: int = 0
    nvml: bool = False
    files: dict[str, str] = field(default_factory=dict)
    near: dict[tuple[str, str], int] = field(default_factory=dict)

    def isolated(self, environ: Mapping[str, str]) -> bool:
        """Return whether devices have already been chosen for this container."""
        chosen = environ.get("NVIDIA_VISIBLE_DEVICES", "all")
        return self.denied > 0 or chosen != "all"

    def allowed(self, environ: Mapping[str, str]) -> VisibleDevices:
        """Apply an inherited CUDA_VISIBLE_DEVICES: numbers, or prefixes of UUIDs."""
        if VISIBLE not in environ:
            return self
        devices: list[str] = []
        for word in environ[VISIBLE].split(","):
            name = word.strip()
            if name.isdigit() and int(name) < len(self.devices):
                devices.append(self.devices[int(name)])
            elif name and not name.isdigit():
                devices += [device for device in self.devices if device.startswith(name)]
            else:
                break  # As in CUDA, the first invalid entry ends the list.
        return replace(self, devices=list(dict.fromkeys(devices)))

    def nearest(self, free: Sequence[str], count: int) -> list[str]:
        """Choose ``count`` of the ``free`` devices that are near to each other.

        Devices on which another process computes come last. Of equally near ones those are chosen
        that are far from the devices that stay free, so that near ones stay together.
        """

        def total(one: str, others: Sequence[str]) -> int:
            return sum(self.near.get((one, other), 0) for other in others)

        def rating(chosen: Sequence[str]) -> tuple[int, int, int]:
            rest = [one for one in free if one not in chosen]
            inside = sum(total(one, chosen) for one in chosen)
            outside = sum(total(one, rest) for one in chosen)
            return -len(self.busy.intersection(chosen)), inside, -outside

        choices = []
        for first in free:
            chosen = [first]
            while len(chosen) < count:
                rest = [one for one in free if one not in chosen]
                chosen.append(max(rest, key=lambda one: (one not in self.busy, total(one, chosen))))
            choices.append(sorted(chosen, key=list(free).index))
        return max(choices, key=rating)


def device_numbers() -> list[str]:
    """Return the numbers of the device files, ``["0", "1"]``; this needs no permission."""
    names = (path[len(FILE) :] for path in glob.glob(f"{FILE}[0-9]*"))
    return sorted((name for name in names if name.isdigit()), key=int)


def visible_devices(numbers: Sequence[str]) -> VisibleDevices:
    """Query the driver; without its library, try the device files ``numbers``."""
    # cost: ctypes; only tasks with GPUs need it.
    from submarine_runtime.gpus.nvml import Nvml, call_with_timeout

    def ask() -> VisibleDevices | None:
        driver = Nvml.open()
        if driver is None:
            return None
        found = driver.devices()
        busy = {device.uuid for device in found if driver.busy(device)}
        denied = driver.denied
        minors = {device.uuid: driver.minor(device) for device in found}
        files = {uuid: f"{FILE}{minor}" for uuid, minor in minors.items() if minor is not None}
        near = driver.proximity(found)
        driver.close()
        return VisibleDevices([device.uuid for device in found], busy, denied, True, files, near)

    told = call_with_timeout(DRIVER_PATIENCE, ask, None)
    if told is not None and (told.devices or told.denied):
        return told
    seen = VisibleDevices()
    for number in numbers:
        path = f"{FILE}{number}"
        allowed = _may_open(path)
        seen.denied += allowed is False
        if allowed:
            seen.devices.append(number)
            seen.files[number] = path
    return seen


def _may_open(path: str) -> bool | None:
    """Return False if a control group or the file's mode forbids it; None if no device responds."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return None
    return True
