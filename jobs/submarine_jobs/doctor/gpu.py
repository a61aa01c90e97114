"""Compare NVIDIA's driver with the CUDA version of the job's framework.

Importing TensorFlow would take seconds and gigabytes. Instead, a subprocess of the job's Python
reads the build files of the frameworks (``cuda_probe``).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from submarine_jobs.doctor.context import DoctorContext, run
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_runtime.translation import _

_PROBE = Path(__file__).with_name("cuda_probe.py")


def driver(context: DoctorContext) -> Finding:
    """Check that the driver of this machine's GPUs is new enough for the framework."""
    path = context.profile.python
    found = probe(path)
    built = {name: cuda for name, cuda in found.frameworks.items() if cuda}
    cpu_only = sorted(name for name, cuda in found.frameworks.items() if not cuda)
    if shutil.which("nvidia-smi") is None and found.driver is None:
        missing = (
            _("; {frameworks} at {path} is built without CUDA").format(
                frameworks=" and ".join(cpu_only), path=path
            )
            if cpu_only
            else ""
        )
        return skipped(_("This machine has no NVIDIA driver{missing}.").format(missing=missing))
    gpus = _gpus()
    if isinstance(gpus, Finding):
        return gpus
    offered = found.driver
    for name, cuda in built.items():
        if offered is not None and _major(cuda) > _major(offered):
            return error(
                _(
                    "{name} at {path} is built for CUDA {cuda}, and the driver offers {offered}."
                ).format(name=name, path=path, cuda=cuda, offered=offered),
                _(
                    "Install a newer NVIDIA driver, or a {name} that is built for CUDA {offered}."
                ).format(name=name, offered=offered),
            )
    if gpus and cpu_only and not built:
        return warning(
            _("{frameworks} at {path} is built without CUDA: it will not use {gpus}.").format(
                frameworks=" and ".join(cpu_only), path=path, gpus=gpus[0]
            ),
            _("Install the build with CUDA, for example `pip install tensorflow[and-cuda]`."),
        )
    frameworks = ", ".join(
        _("{name} for CUDA {cuda}").format(name=name, cuda=cuda) for name, cuda in built.items()
    )
    return ok(
        _("{count} GPU(s), {gpus}; the driver offers CUDA {offered}; {frameworks}.").format(
            count=len(gpus),
            gpus=gpus[0] if gpus else _("none"),
            offered=offered or _("of unknown version"),
            frameworks=frameworks or _("no framework is installed"),
        )
    )


@dataclass(frozen=True)
class ProbeResult:
    """Framework -> CUDA version of its build (None: without); CUDA version of the driver."""

    frameworks: dict[str, str | None] = field(default_factory=dict)
    driver: str | None = None


def probe(python: str) -> ProbeResult:
    """Return what the interpreter has; nothing if it is not on this machine."""
    if not os.access(python, os.X_OK):
        return ProbeResult()
    code, text = run([python, "-I", _PROBE], 15.0)
    try:
        return (
            ProbeResult(**json.loads(text.strip().splitlines()[-1])) if not code else ProbeResult()
        )
    except (ValueError, IndexError, TypeError):
        return ProbeResult()


def _gpus() -> list[str] | Finding:
    """Return names and driver version of the GPUs, or the finding why they cannot be listed."""
    if shutil.which("nvidia-smi") is None:
        return []
    fields = "name,driver_version,memory.total"
    code, text = run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], 15.0)
    if code:
        return error(
            _("nvidia-smi fails: {text}").format(text=text.strip()[-200:]),
            _("Reload the nvidia kernel module, or reboot after a driver update."),
        )
    return [line.strip() for line in text.splitlines() if line.strip()][:64]


def _major(version: str) -> int:
    return int(version.partition(".")[0])
