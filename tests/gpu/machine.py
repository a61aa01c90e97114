"""This machine's GPUs as ``nvidia-smi`` tells them, and programs that really use one.

What the agent says of a device is compared with these words, which come from another program. The
programs need PyTorch where the tests run; nothing here imports it.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from submarine_jobs.client import Job
from tests.waiting import until

#: For what takes seconds: PyTorch's first touch of a device is one.
PATIENCE = 150.0
#: MiB of host memory for a program that imports PyTorch and opens a device.
HOST_MEMORY = 16384
#: MiB that two looks at an unchanged device may differ by.
NEAR = 64.0


class Smi(NamedTuple):
    """One GPU: percent busy, and MiB."""

    uuid: str
    percent: float
    used: float
    total: float


def smi() -> list[Smi]:
    """What ``nvidia-smi`` says now."""
    fields = "uuid,utilization.gpu,memory.used,memory.total"
    told = subprocess.run(
        ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    rows = [[word.strip() for word in line.split(",")] for line in told.stdout.splitlines()]
    return [Smi(uuid, *(float(word) for word in words)) for uuid, *words in rows]


def _ready() -> bool:
    if shutil.which("nvidia-smi") is None or importlib.util.find_spec("torch") is None:
        return False
    try:
        return bool(smi())
    except (subprocess.SubprocessError, ValueError, TypeError):
        return False


#: For every module here; nothing is asked of a machine where there is no nvidia-smi.
REAL_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _ready(), reason="no NVIDIA GPU with a PyTorch beside it"),
]

#: Holds 4 GiB of the device, keeps it busy, and prints what it found, until ``{go}`` is there.
LOAD = """
import json, os
import torch

held = torch.zeros(4 << 30, dtype=torch.uint8, device="cuda")
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
properties = torch.cuda.get_device_properties(0)
print(json.dumps({{
    "pid": os.getpid(),
    "visible": os.environ["CUDA_VISIBLE_DEVICES"],
    "count": torch.cuda.device_count(),
    "uuid": f"GPU-{{properties.uuid}}",
}}), flush=True)
step = 0
while not os.path.exists({go!r}):
    for _ in range(200):
        b = a @ a
    torch.cuda.synchronize()
    step += 1
    if step % 50 == 0:
        print(f"loss: {{1 / step:.5f}}", flush=True)
"""

#: A cell that holds 4 GiB and a matrix, and names the device.
HOLD = """
import torch
held = torch.zeros(4 << 30, dtype=torch.uint8, device="cuda")
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
print(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
"""

#: Asks for more than any device has, a gigabyte at a time.
FILL = """
import torch

held = []
while True:
    held.append(torch.zeros(1 << 30, dtype=torch.uint8, device="cuda"))
"""

#: What a program sees of the devices.
LOOK = """
import json, os
import torch

print(json.dumps([os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count()]), flush=True)
"""


def first_line(job: Job) -> Any:
    """The first line that the program printed, of JSON; waits for it."""

    def line() -> bytes | None:
        text = job.log("stdout").data
        if b"\n" in text:
            return text.split(b"\n")[0]
        record = job.record()
        assert not record.state.ended, (record.detail, job.log("stderr").data.decode()[-2000:])
        return None

    return json.loads(until(line, f"{job.id} prints a line"))


def used(uuid: str) -> float:
    """MiB in use on one device."""
    return next(one.used for one in smi() if one.uuid == uuid)


def load(go: Path) -> str:
    """``LOAD``, until ``go`` is there."""
    return LOAD.format(go=str(go))
