"""What a container sees of its node's GPUs, by the driver or by the device files.

Chooses and claims nothing (``gpus``).
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from typing import Mapping, Sequence

#: A device file's path, without its number.
FILE = "/dev/nvidia"
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Seconds that a driver may take to answer; one that wakes its devices takes some.
DRIVER_PATIENCE = 20.0


@dataclass
class Seen:
    """What the node shows to this container.

    Parameters
    ----------
    devices
        Identifiers.
    busy
        Those on which some process computes.
    denied
        Number of devices that this container may not use.
    nvml
        Whether the driver told this.
    files
        Device files of whole GPUs, by identifier.
    """

    devices: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    denied: int = 0
    nvml: bool = False
    files: dict[str, str] = field(default_factory=dict)

    def isolated(self, environ: Mapping[str, str]) -> bool:
        """Whether somebody has already chosen devices for this container."""
        chosen = environ.get("NVIDIA_VISIBLE_DEVICES", "all")
        return self.denied > 0 or chosen != "all"

    def allowed(self, environ: Mapping[str, str]) -> Seen:
        """Only what an inherited CUDA_VISIBLE_DEVICES leaves: numbers, or beginnings of UUIDs."""
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
                break  # as CUDA has it: the first invalid one ends the list
        return Seen(list(dict.fromkeys(devices)), self.busy, self.denied, self.nvml, self.files)


def device_numbers() -> list[str]:
    """Numbers of the device files, ``["0", "1"]``; they are there without any permission."""
    names = (path[len(FILE) :] for path in glob.glob(f"{FILE}[0-9]*"))
    return sorted((name for name in names if name.isdigit()), key=int)


def look(numbers: Sequence[str]) -> Seen:
    """Ask the driver; without its library, try the device files ``numbers``."""
    from submarine_runtime.gpus.nvml import Nvml, within  # ctypes: only for tasks with GPUs

    def ask() -> Seen | None:
        driver = Nvml.open()
        if driver is None:
            return None
        found = driver.devices()
        busy = {device.uuid for device in found if driver.busy(device)}
        denied = driver.denied
        minors = {device.uuid: driver.minor(device) for device in found}
        files = {uuid: f"{FILE}{minor}" for uuid, minor in minors.items() if minor is not None}
        driver.close()
        return Seen([device.uuid for device in found], busy, denied, True, files)

    told = within(DRIVER_PATIENCE, ask, None)
    if told is not None and (told.devices or told.denied):
        return told
    seen = Seen()
    for number in numbers:
        path = f"{FILE}{number}"
        allowed = _may_open(path)
        seen.denied += allowed is False
        if allowed:
            seen.devices.append(number)
            seen.files[number] = path
    return seen


def _may_open(path: str) -> bool | None:
    """False where a control group (or the file's mode) forbids it; None where nothing answers."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return None
    return True
