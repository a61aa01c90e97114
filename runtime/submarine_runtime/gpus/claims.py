"""Determine the GPUs of a task: those that its cluster assigned, or those that it claims.

If the cluster isolates devices, all visible devices belong to the task and are only reported.
Otherwise (DefaultContainerExecutor, the local backend) the agent takes the locks of the requested
number of devices and sets CUDA_VISIBLE_DEVICES for the program. On a node without a driver, numbers
are claimed in the same way. ``nvml`` measures devices.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from submarine_runtime.gpus.visibility import (
    VISIBLE,
    VisibleDevices,
    device_numbers,
    visible_devices,
)
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.gpus.device_locks import LockDirectories

#: Seconds to wait for a device of a container that is ending.
PATIENCE = 60.0
#: Maximum number of counted devices on a node without a driver.
MAX_COUNTED = 1024
#: Warning for a claim with locks that another user could remove.
WEAK = _(
    "The GPUs are locked by files in /tmp/submarine-devices only, which another user may be "
    "able to remove: neither device files nor a directory of root with mode 1777 (/run/lock, "
    "/dev/shm) can be used here."
)


class NoDeviceError(ValueError):
    """The task cannot get the requested devices; one sentence."""


@dataclass
class GpuClaim:
    """The devices of one task; held until ``release`` or the end of this process.

    Parameters
    ----------
    devices
        UUIDs if a driver reports them, else numbers; for ``TaskRecord.gpus``.
    variables
        Variables for the program; ``--env`` takes precedence.
    note
        One sentence for the job's events; empty: none.
    warning
        The same, for a weakness of the locks.
    driver
        Whether the devices can be measured.
    """

    devices: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    note: str = ""
    warning: str = ""
    driver: bool = False
    _on_release: Callable[[], None] | None = None

    def release(self) -> None:
        """Release the devices; may be called repeatedly."""
        give_back, self._on_release = self._on_release, None
        if give_back is not None:
            give_back()


def claim_gpus(
    config: AgentConfig,
    environ: Mapping[str, str] | None = None,
    *,
    wait: Callable[[float], object] = time.sleep,
    patience: float = PATIENCE,
    places: LockDirectories | None = None,
    report: Callable[[str], object] = lambda sentence: None,
) -> GpuClaim:
    """Return the devices of this task.

    Parameters
    ----------
    environ
        The container's environment; None: this process's.
    wait
        Function that waits for some seconds; it returns early for SIGTERM and a cancel.
    patience
        Seconds to wait for a device of a container that is ending.
    places
        Lock directories; None: the default ones.
    report
        Called with a sentence when the task has to wait.

    Raises
    ------
    NoDeviceError
        If there are fewer devices than requested, or all remain locked.
    """
    variables = os.environ if environ is None else environ
    numbers = device_numbers()
    if not config.size.gpus and not numbers:
        return GpuClaim()
    if not config.size.gpus:
        return _hide(config, variables)
    seen = visible_devices(numbers)
    # On the local backend the container, if there is one, is the notebook's: all of its jobs share
    # the devices that were chosen for it.
    isolated = config.record.backend != "local" and seen.isolated(variables)
    if config.claim_gpus is False or (config.claim_gpus is None and isolated):
        return _assigned(config, seen)
    locks = _Locks(config.size.gpus, wait, patience, places, report)
    if not numbers and not seen.devices:
        return _counted(config, variables, locks)
    return _claim_free(config, seen.allowed(variables), locks)


def _assigned(config: AgentConfig, seen: VisibleDevices) -> GpuClaim:
    note = ""
    if len(seen.devices) != config.size.gpus:
        note = _("{gpus} requested, and the container has {count}.").format(
            gpus=_count(config.size.gpus), count=len(seen.devices)
        )
    return GpuClaim(list(seen.devices), note=note, driver=seen.nvml and bool(seen.devices))


def _hide(config: AgentConfig, environ: Mapping[str, str]) -> GpuClaim:
    """Hide the devices from a task that requested none, except on a local machine.

    Whether the cluster isolates devices is not checked: if it does, hiding them has no effect.
    """
    if VISIBLE in environ or config.claim_gpus is False:
        return GpuClaim()
    if config.record.backend == "local" and not config.claim_gpus:
        return GpuClaim()
    return GpuClaim(variables={VISIBLE: ""})


def _claim_free(config: AgentConfig, seen: VisibleDevices, locks: _Locks) -> GpuClaim:
    if len(seen.devices) < config.size.gpus:
        raise NoDeviceError(
            _(
                "The task asks for {gpus} and this node shows {count}: request fewer, or have "
                "the operator check the node's devices."
            ).format(gpus=_count(config.size.gpus), count=len(seen.devices) or "none")
        )
    order = sorted(seen.devices, key=lambda device: device in seen.busy)
    claimed = locks.take(order, seen.files, seen.nearest if any(seen.near.values()) else None)
    if seen.nvml:
        claimed.variables = {VISIBLE: ",".join(claimed.devices)}
    else:
        claimed.variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: ",".join(claimed.devices)}
    claimed.driver = seen.nvml
    others = seen.busy.intersection(claimed.devices)
    if others:
        claimed.note = _("Also in use by a process of another job: {others}.").format(
            others=", ".join(sorted(others))
        )
    return claimed


def _counted(config: AgentConfig, environ: Mapping[str, str], locks: _Locks) -> GpuClaim:
    """Claim numbers if the cluster counts GPUs on a node that shows none."""
    # NodeManagers that share a machine, as in a minicluster, count separately.
    node = f"counted-{environ.get('NM_PORT', 'local')}-"
    names = [f"{node}{number}" for number in range(MAX_COUNTED)]
    claimed = locks.take(names)
    claimed.devices = sorted((name[len(node) :] for name in claimed.devices), key=int)
    claimed.variables = {VISIBLE: ",".join(claimed.devices)}
    claimed.note = _(
        "No driver: {gpus} requested and this node has none; the program finds "
        "{visible}={variables}, which is counted only."
    ).format(gpus=_count(config.size.gpus), visible=VISIBLE, variables=claimed.variables[VISIBLE])
    return claimed


class _Locks:
    """Takes ``count`` devices by their locks, with a time limit."""

    def __init__(
        self,
        count: int,
        wait: Callable[[float], object],
        patience: float,
        places: LockDirectories | None,
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._count = count
        self._wait = wait
        self._patience = patience
        self._places = places
        self._report = report

    def take(
        self,
        names: Sequence[str],
        files: Mapping[str, str] | None = None,
        choose: Callable[[Sequence[str], int], Sequence[str]] | None = None,
    ) -> GpuClaim:
        """Take free ones of ``names``: the first, or those that ``choose`` returns.

        ``files`` are their device files.
        """
        # cost: the locks, which only a task that claims its GPUs itself needs.
        from submarine_runtime.gpus.device_locks import DeviceLocks, LocksError

        by_file = {_lock_name(name): name for name in names}
        reported = False

        def wait(seconds: float) -> None:
            nonlocal reported
            if not reported:
                reported = True
                self._report(
                    _("Waits for {count}: this node has {names_count}{holders_text}.").format(
                        count=_count(self._count),
                        names_count=len(names),
                        holders_text=_holders_text(locks.holders(by_file)),
                    )
                )
            self._wait(seconds)

        try:
            paths = {_lock_name(name): path for name, path in (files or {}).items()}
            locks = DeviceLocks(self._places, paths)
            if choose is not None:
                pick, lock_of = choose, {name: lock for lock, name in by_file.items()}
                locks.choose = lambda free: [
                    lock_of[name] for name in pick([by_file[one] for one in free], self._count)
                ]
            if locks.take_within(list(by_file), self._count, self._patience, wait):
                held = [by_file[name] for name in locks.held]
                return GpuClaim(held, warning=WEAK if locks.weak else "", _on_release=locks.release)
            holders = locks.holders(by_file)
            locks.release()
        except LocksError as exc:
            raise NoDeviceError(_("GPUs cannot be claimed: {error}.").format(error=exc)) from exc
        raise NoDeviceError(
            _(
                "The task asks for {count}, and of {names_count} on this node too few became "
                "free within {patience:g} s{holders}."
            ).format(
                count=_count(self._count),
                names_count=len(names),
                patience=self._patience,
                holders=_holders_text(holders),
            )
        )


def _holders_text(holders: Sequence[str]) -> str:
    return _(", held by ") + ", ".join(holders[:8]) if holders else ""


def _lock_name(device: str) -> str:
    """Return a file name for a device; the driver's text may not be a valid name."""
    return re.sub("[^0-9A-Za-z-]", "_", device)[:128]


def _count(number: int) -> str:
    return (
        _("{number} GPU").format(number=number)
        if number == 1
        else _("{number} GPUs").format(number=number)
    )
