"""Advice for the owner of a job, one sentence each, computed from measurements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Sequence

from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_runtime.gpus import DeviceUtilization
    from submarine_runtime.protocol import Failure

#: A shorter run, in seconds, gives no advice.
MIN_SECONDS = 30.0
#: Too much memory was requested if less than this share of it was ever used ...
OVER_REQUESTED = 0.4
#: ... and at least this many MiB would be saved; the advice is the peak multiplied by ``MARGIN``.
MIN_SAVING_MIB = 1024
MARGIN = 1.4
#: A GPU is idle below this mean percentage over at least this many seconds.
IDLE_PERCENT = 5.0
IDLE_SECONDS = 180.0
#: A GPU without utilization and with less memory in use, in MiB, has no context of a program.
UNUSED_MIB = 64.0
#: Errors of GPUs as PyTorch, CUDA itself, TensorFlow, JAX, CuPy and NCCL report them -> sentence.
_DEVICE_ERRORS = {
    r"CUDA (?:error: )?out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|OOM when allocating|RESOURCE_EXHAUSTED: Out of memory|^Out of memory allocating [\d,]+ bytes"
    r"|Cuda failure (?:\d+ )?'out of memory'": gettext_noop(
        "The GPU's own memory was full, which --memory does not change: make batches "
        "smaller, or compute in half precision."
    ),
    r"uncorrectable (?:ECC|NVLink) error|ECC_UNCORRECTABLE"
    r"|(?:ECC|Nvlink)Uncorrectable": gettext_noop(
        "The GPU or its NVLink had an error that could not be corrected, which is a fault of the "
        "device: run again with --avoid-node and this node, and report the node to its operator."
    ),
    r"busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|cudaErrorDevicesUnavailable": gettext_noop(
        "Another process uses the GPU exclusively, or the device has failed: `nvidia-smi` on the "
        "node shows its processes and its compute mode; --avoid-node chooses another node."
    ),
    r"driver version is insufficient|NVIDIA driver on your system is too old": gettext_noop(
        "The node's NVIDIA driver is older than the program's build of CUDA needs: install a "
        "build for an older CUDA, or run on other nodes."
    ),
    r"Duplicate GPU detected": gettext_noop(
        "NCCL needs a GPU of its own for each rank: request as many GPUs as processes, or use gloo."
    ),
    r"no kernel image is available": gettext_noop(
        "The library is not built for this model of GPU: install another build, or run on nodes "
        "with other GPUs."
    ),
}


def resource_hints(
    *,
    requested: float | None,
    peak: float,
    seconds: float,
    succeeded: bool,
    gpus: Sequence[DeviceUtilization] = (),
    failure: Failure | None = None,
) -> list[str]:
    """Return the sentences for one task that has ended.

    Parameters
    ----------
    requested, peak
        MiB requested (None: no limit) and the largest amount used.
    seconds
        Run time of the program.
    failure
        Exception that ended a program with GPUs.
    """
    found: list[str] = []
    if failure is not None:
        message = failure.message[:4096]
        known = [words for text, words in _DEVICE_ERRORS.items() if re.search(text, message)]
        found += map(_, known[:1])
    if requested and succeeded and seconds >= MIN_SECONDS and peak < OVER_REQUESTED * requested:
        advice = recommended_memory(peak)
        if requested - advice >= MIN_SAVING_MIB:
            found.append(
                _("Memory: used {of}: ask for {advice}.").format(
                    of=_of(peak, requested), advice=_size(advice)
                )
            )
    found += [
        _(
            "{device} was {percent:.0f} % busy on average over {seconds:.0f} min: let the "
            "program use it, or ask for fewer GPUs."
        ).format(device=_name(gpu.device), percent=gpu.percent, seconds=gpu.seconds / 60)
        for gpu in gpus
        if gpu.seconds >= IDLE_SECONDS and gpu.percent < IDLE_PERCENT and not _is_unused(gpu)
    ]
    # A program that fails early may have had no use for them yet.
    least = MIN_SECONDS if succeeded else IDLE_SECONDS
    found += [
        _(
            "No program used {device} in {seconds:.0f} s: check that the library is built for "
            "CUDA and the code uses it, or ask for fewer GPUs."
        ).format(device=_name(gpu.device), seconds=gpu.seconds)
        for gpu in gpus
        if gpu.seconds >= least and _is_unused(gpu)
    ]
    return found


def _is_unused(gpu: DeviceUtilization) -> bool:
    return not gpu.percent and gpu.memory is not None and gpu.memory < UNUSED_MIB


def idle_gpu_sentence(seconds: float, tasks: Sequence[str]) -> str:
    """Return the sentence about a job whose GPUs have been idle for ``seconds``."""
    more = _(" and {count} more").format(count=len(tasks) - 3) if len(tasks) > 3 else ""
    return _("The GPUs of {tasks} were below {percent:.0f} % for {seconds:.0f} s.").format(
        tasks=", ".join(tasks[:3]) + more, percent=IDLE_PERCENT, seconds=seconds
    )


def memory_sentence(used: float, requested: float) -> str:
    """Return ``The program used 4.1 of 4 GB: ask for 6 GB.`` for memory that did not suffice."""
    return _("The program used {of}: ask for {size}.").format(
        of=_of(used, requested), size=_size(recommended_memory(max(used, requested)))
    )


def recommended_memory(peak: float) -> int:
    """Return the MiB to request for a peak of ``peak`` MiB: 40 % more, in round steps."""
    wanted = peak * MARGIN
    step = 64
    while step * 6 < wanted:
        step *= 2
    return max(128, int(-(-wanted // step)) * step)


def _of(used: float, requested: float) -> str:
    """Return ``4.1 of 4 GB``; in MiB if GB would hide the difference or be a fraction."""
    if requested < 1024:
        return _("{used:.0f} of {requested:.0f} MiB").format(used=used, requested=requested)
    digits = 1 if abs(used - requested) >= 52 else 2
    return _("{used:.{digits}f} of {number} GB").format(
        used=used / 1024, digits=digits, number=_number(requested / 1024)
    )


def _size(mib: float) -> str:
    return (
        _("{mib:.0f} MiB").format(mib=mib)
        if mib < 1024
        else _("{number} GB").format(number=_number(mib / 1024))
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _name(device: str) -> str:
    return (
        device if device.startswith(("GPU-", "MIG-")) else _("GPU {device}").format(device=device)
    )
