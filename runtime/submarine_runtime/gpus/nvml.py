"""NVIDIA's management library by ctypes: devices, utilization, memory and processes.

Every failure (no library, no driver, a device that fell off the bus, a function that this driver
lacks) is reported as "no driver" or None, never as an exception. A call may hang in a broken
driver: a thread that must not hang uses ``call_with_timeout``. No setting of a device is changed.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, NamedTuple, Sequence, TypeVar

T = TypeVar("T")

LIBRARY = "libnvidia-ml.so.1"
MAX_DEVICES = 256
_UUID_BYTES = 96
_NAME_BYTES = 96
_NO_PERMISSION = 4
#: Links of a GPU at most; values of ``nvmlGpuP2PCapsIndex_t`` and ``nvmlGpuTopologyLevel_t``.
MAX_LINKS = 18
_P2P_NVLINK, _SYSTEM = 2, 50
_MIB = 1 << 20


class Device(NamedTuple):
    """One device for a program: a whole GPU, or one slice of a GPU in MIG mode.

    ``handle`` is NVML's; ``parent`` is the index of the GPU that a slice belongs to, else its own.
    """

    uuid: str
    name: str
    parent: int
    slice: bool
    handle: Any


class Reading(NamedTuple):
    """Utilization (0 to 100) and memory (MiB) of a device; None if it is not reported."""

    percent: float | None
    used: float | None
    total: float | None


class _Rates(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _MemoryV2(ctypes.Structure):
    """Memory with the driver's own part reported separately, as by ``nvidia-smi``; since 510."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class _Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "subsystem")),
        ("address", ctypes.c_char * 32),
    ]


class Nvml:
    """The library, initialised; ``Nvml.open()`` returns None without a working driver.

    Attributes
    ----------
    denied
        Devices of the node that this container may not use, as counted by ``devices``.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.denied = 0

    @classmethod
    def open(cls, library: str = LIBRARY) -> Nvml | None:
        """Load and initialise."""
        try:
            made = cls(ctypes.CDLL(library))
        except OSError:
            return None
        return made if made._call("nvmlInit_v2") == 0 else None

    def close(self) -> None:
        """Shut the library down."""
        self._call("nvmlShutdown")

    def _call(self, name: str, *arguments: Any) -> int:
        """Return the function's return code, 0 for success; -1 if the driver lacks it."""
        try:
            function = getattr(self._library, name)
            return int(function(*arguments))
        except (AttributeError, ctypes.ArgumentError, ValueError, OSError):
            return -1

    def devices(self) -> list[Device]:
        """Return the visible devices in the driver's order; slices of a GPU in MIG mode."""
        count = ctypes.c_uint()
        if self._call("nvmlDeviceGetCount_v2", ctypes.byref(count)) != 0:
            return []
        found: list[Device] = []
        self.denied = 0
        for index in range(min(count.value, MAX_DEVICES)):
            handle = ctypes.c_void_p()
            code = self._call(
                "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)
            )
            self.denied += code == _NO_PERMISSION
            if code == 0:
                slices = self._slices(handle, index)
                found += self._device(handle, index, False) if slices is None else slices
        return found

    def _device(self, handle: Any, index: int, is_slice: bool) -> list[Device]:
        uuid = self._text("nvmlDeviceGetUUID", handle, _UUID_BYTES)
        name = self._text("nvmlDeviceGetName", handle, _NAME_BYTES)
        return [Device(uuid, name, index, is_slice, handle)] if uuid else []

    def _slices(self, handle: Any, index: int) -> list[Device] | None:
        """Return the MIG devices of a GPU; None if it is not in MIG mode."""
        now, later = ctypes.c_uint(), ctypes.c_uint()
        code = self._call("nvmlDeviceGetMigMode", handle, ctypes.byref(now), ctypes.byref(later))
        if code != 0 or now.value != 1:
            return None
        most = ctypes.c_uint()
        self._call("nvmlDeviceGetMaxMigDeviceCount", handle, ctypes.byref(most))
        found: list[Device] = []
        for number in range(min(most.value, 64)):
            part = ctypes.c_void_p()
            code = self._call(
                "nvmlDeviceGetMigDeviceHandleByIndex",
                handle,
                ctypes.c_uint(number),
                ctypes.byref(part),
            )
            if code == 0:
                found += self._device(part, index, True)
        return found

    def _text(self, name: str, handle: Any, size: int) -> str:
        buffer = ctypes.create_string_buffer(size)
        if self._call(name, handle, buffer, ctypes.c_uint(size)) != 0:
            return ""
        return buffer.value.decode("utf-8", "replace")

    def minor(self, device: Device) -> int | None:
        """Return the number of a whole GPU's device file; None for a slice, or if unknown."""
        number = ctypes.c_uint()
        code = self._call("nvmlDeviceGetMinorNumber", device.handle, ctypes.byref(number))
        return None if device.slice or code != 0 else int(number.value)

    def proximity(self, devices: Sequence[Device]) -> dict[tuple[str, str], int]:
        """Return how near pairs of whole GPUs are: by their NVLinks, else by their place on PCIe.

        A pair with an NVLink is nearer than any without. GPUs behind an NVSwitch have no links to
        each other, and count as having ``MAX_LINKS``.
        """
        whole = [device for device in devices if not device.slice]
        if len(whole) < 3:
            return {}  # There is nothing to choose.
        own = {self._address("nvmlDeviceGetPciInfo_v3", one.handle): one.uuid for one in whole}
        own.pop(b"", None)
        found: dict[tuple[str, str], int] = {}
        for one in whole:
            remote = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
            addresses = [
                self._address(remote, one.handle, ctypes.c_uint(link)) for link in range(MAX_LINKS)
            ]
            ends = [own.get(address) for address in addresses]
            for other in whole:
                if other is not one:
                    links = ends.count(other.uuid)
                    found[one.uuid, other.uuid] = self._proximity(one.handle, other.handle, links)
        return found

    def _proximity(self, one: Any, other: Any, links: int) -> int:
        status, level = ctypes.c_uint(1), ctypes.c_uint(_SYSTEM)
        index = ctypes.c_uint(_P2P_NVLINK)
        code = self._call("nvmlDeviceGetP2PStatus", one, other, index, ctypes.byref(status))
        if not links and code == 0 and status.value == 0:
            links = MAX_LINKS
        self._call("nvmlDeviceGetTopologyCommonAncestor", one, other, ctypes.byref(level))
        return 100 * links or max(0, _SYSTEM - level.value)

    def _address(self, name: str, *arguments: Any) -> bytes:
        """Return the PCI address that a function gives; empty if it fails."""
        pci = _Pci()
        code = self._call(name, *arguments, ctypes.byref(pci))
        return bytes(pci.address) if code == 0 else b""

    def reading(self, device: Device) -> Reading:
        """Return utilization and memory of the device now."""
        rates = _Rates()
        percent = None
        if self._call("nvmlDeviceGetUtilizationRates", device.handle, ctypes.byref(rates)) == 0:
            percent = float(min(100, rates.gpu))
        return Reading(percent, *self._memory(device))

    def _memory(self, device: Device) -> tuple[float | None, float | None]:
        """Return MiB used by programs, and in total."""
        apart = _MemoryV2(ctypes.sizeof(_MemoryV2) | 2 << 24)
        if self._call("nvmlDeviceGetMemoryInfo_v2", device.handle, ctypes.byref(apart)) == 0:
            return apart.used / _MIB, apart.total / _MIB
        memory = _Memory()
        if self._call("nvmlDeviceGetMemoryInfo", device.handle, ctypes.byref(memory)) == 0:
            return memory.used / _MIB, memory.total / _MIB
        return None, None

    def busy(self, device: Device) -> bool:
        """Return whether a process of any user computes on the device now."""
        for name in ("_v3", "_v2", ""):
            count = ctypes.c_uint(0)
            # With an empty buffer the result is 0 for "none", else that the buffer is too small.
            code = self._call(
                f"nvmlDeviceGetComputeRunningProcesses{name}",
                device.handle,
                ctypes.byref(count),
                None,
            )
            if code != -1:
                return count.value > 0
        return False


def call_with_timeout(seconds: float, action: Callable[[], T], default: T) -> T:
    """Return ``action()``, run in a separate thread; ``default`` if it fails or takes longer."""
    answer: list[T] = []

    def run() -> None:
        try:
            answer.append(action())
        except Exception:
            return

    thread = threading.Thread(target=run, name="nvml", daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else default
