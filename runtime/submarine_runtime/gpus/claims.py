"""Which GPUs a task has: those that its cluster gave it, or those that it claims for itself.

Where the cluster isolates devices, what is visible is the task's, and is only reported. Where it
does not (DefaultContainerExecutor, the local backend), the agent takes as many devices as were
asked for by their locks and shows them to the program in CUDA_VISIBLE_DEVICES. Where the node has
no driver, numbers are claimed in the same way. Measures nothing (``nvml``).
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from submarine_runtime.gpus.visibility import VISIBLE, Seen, device_numbers, look
from submarine_runtime.protocol.agent_config import AgentConfig

if TYPE_CHECKING:
    from submarine_runtime.gpus.device_locks import Places

#: Seconds that a device of a container that is just ending may take to become free.
PATIENCE = 60.0
#: A node without a driver has at most so many counted devices.
MAX_COUNTED = 1024
#: What a claim says whose locks another user could remove.
WEAK = (
    "The GPUs are locked by files in /tmp/submarine-devices only, which another user may be able "
    "to remove: neither device files nor a directory of root with mode 1777 (/run/lock, /dev/shm) "
    "can be used here."
)


class NoDeviceError(ValueError):
    """The task cannot have the devices that it asked for; one sentence."""


@dataclass
class Claim:
    """The devices of one task; held until ``release`` or the end of this process.

    Parameters
    ----------
    devices
        UUIDs where a driver tells, else numbers; for ``TaskRecord.gpus``.
    variables
        What the program's environment gets; what the user set with ``--env`` goes on top.
    note
        One sentence for the job's events, empty when there is nothing to say.
    warning
        The same, for a weakness of the locks.
    driver
        Whether there is anything to measure: a driver, and devices.
    """

    devices: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    note: str = ""
    warning: str = ""
    driver: bool = False
    _give_back: Callable[[], None] | None = None

    def release(self) -> None:
        """Let others have the devices; no matter how often."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


def claim(
    config: AgentConfig,
    environ: Mapping[str, str] | None = None,
    *,
    wait: Callable[[float], object] = time.sleep,
    patience: float = PATIENCE,
    places: Places | None = None,
    tell: Callable[[str], object] = lambda sentence: None,
) -> Claim:
    """The devices of this task.

    Parameters
    ----------
    environ
        The container's environment; None: this process's.
    wait
        How to wait for some seconds: so that SIGTERM and a cancel are heard meanwhile.
    patience
        Seconds to wait for a device of a container that ends.
    places
        Where the locks are; None: those of every node.
    tell
        Told once, in a sentence, when it has to wait.

    Raises
    ------
    NoDeviceError
        If there are not as many devices as were asked for, or all stay held.
    """
    variables = os.environ if environ is None else environ
    numbers = device_numbers()
    if not config.gpus and not numbers:
        return Claim()
    if not config.gpus:
        return _hidden(config, variables)
    seen = look(numbers)
    # On the local backend the container, if there is one, is the notebook's: what was chosen for it
    # all of its jobs see.
    isolated = config.backend != "local" and seen.isolated(variables)
    if config.claim_gpus is False or (config.claim_gpus is None and isolated):
        return _given(config, seen)
    locks = _Locks(config.gpus, wait, patience, places, tell)
    if not numbers and not seen.devices:
        return _counted(config, variables, locks)
    return _taken(config, seen.allowed(variables), locks)


def _given(config: AgentConfig, seen: Seen) -> Claim:
    note = ""
    if len(seen.devices) != config.gpus:
        note = f"{_count(config.gpus)} asked for, and the container shows {len(seen.devices)}."
    return Claim(list(seen.devices), note=note, driver=seen.nvml and bool(seen.devices))


def _hidden(config: AgentConfig, environ: Mapping[str, str]) -> Claim:
    """A task that asked for none must not take one by accident; one's own machine is one's own.

    Nobody is asked whether the cluster isolates: then there is nothing to hide, and hiding it does
    no harm.
    """
    if VISIBLE in environ or config.claim_gpus is False:
        return Claim()
    if config.backend == "local" and not config.claim_gpus:
        return Claim()
    return Claim(variables={VISIBLE: ""})


def _taken(config: AgentConfig, seen: Seen, locks: _Locks) -> Claim:
    if len(seen.devices) < config.gpus:
        raise NoDeviceError(
            f"The task asks for {_count(config.gpus)} and this node shows "
            f"{len(seen.devices) or 'none'}: ask for fewer, or have the node's devices looked at."
        )
    order = sorted(seen.devices, key=lambda device: device in seen.busy)
    claimed = locks.take(order, seen.files)
    if seen.nvml:
        claimed.variables = {VISIBLE: ",".join(claimed.devices)}
    else:
        claimed.variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: ",".join(claimed.devices)}
    claimed.driver = seen.nvml
    others = seen.busy.intersection(claimed.devices)
    if others:
        claimed.note = (
            f"In use by a process that is not of this job too: {', '.join(sorted(others))}."
        )
    return claimed


def _counted(config: AgentConfig, environ: Mapping[str, str], locks: _Locks) -> Claim:
    """Numbers, where the cluster counts GPUs on a node that shows none."""
    # NodeManagers that share a machine, as a minicluster's do, count each for itself.
    node = f"counted-{environ.get('NM_PORT', 'local')}-"
    names = [f"{node}{number}" for number in range(MAX_COUNTED)]
    claimed = locks.take(names)
    claimed.devices = sorted((name[len(node) :] for name in claimed.devices), key=int)
    claimed.variables = {VISIBLE: ",".join(claimed.devices)}
    claimed.note = (
        f"No driver: {_count(config.gpus)} asked for and this node shows none; the program finds "
        f"{VISIBLE}={claimed.variables[VISIBLE]}, which is counted only."
    )
    return claimed


class _Locks:
    """How ``count`` devices are taken by their locks: where, and with how much patience."""

    def __init__(
        self,
        count: int,
        wait: Callable[[float], object],
        patience: float,
        places: Places | None,
        tell: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._count = count
        self._wait = wait
        self._patience = patience
        self._places = places
        self._tell = tell

    def take(self, names: Sequence[str], files: Mapping[str, str] | None = None) -> Claim:
        """Some of ``names``, the first ones that are free; ``files`` are their device files."""
        from submarine_runtime.gpus.device_locks import DeviceLocks, LocksError

        by_file = {_file(name): name for name in names}
        told = False

        def wait(seconds: float) -> None:
            nonlocal told
            if not told:
                told = True
                self._tell(
                    f"Waits for {_count(self._count)}: this node has {len(names)}"
                    f"{_by(locks.holders(by_file))}."
                )
            self._wait(seconds)

        try:
            paths = {_file(name): path for name, path in (files or {}).items()}
            locks = DeviceLocks(self._places, paths)
            if locks.take_within(list(by_file), self._count, self._patience, wait):
                held = [by_file[name] for name in locks.held]
                return Claim(held, warning=WEAK if locks.weak else "", _give_back=locks.release)
            holders = locks.holders(by_file)
            locks.release()
        except LocksError as exc:
            raise NoDeviceError(f"GPUs cannot be claimed: {exc}.") from exc
        raise NoDeviceError(
            f"The task asks for {_count(self._count)}, and of {len(names)} on this node too few "
            f"became free within {self._patience:g} s{_by(holders)}."
        )


def _by(holders: Sequence[str]) -> str:
    return ", held by " + ", ".join(holders[:8]) if holders else ""


def _file(device: str) -> str:
    """A file's name for a device; a driver's words are no paths."""
    return re.sub("[^0-9A-Za-z-]", "_", device)[:128]


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"
