"""A node with GPUs for tests: a real shared library in place of the driver's, real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

RUNTIME = Path(__file__).resolve().parents[3] / "runtime"
_SOURCE = Path(__file__).with_name("fake_nvml.c")

CLAIMER = """
import json, os, subprocess, sys
orders = json.loads(sys.argv[1])
sys.path.insert(0, orders["runtime"])
from submarine_runtime.gpus import claims as gpus, device_locks, nvml
from submarine_runtime.protocol.agent_config import AgentConfig, JobStore
from submarine_runtime.protocol.record import JobRecord, State
from submarine_runtime.protocol.spec import JobSpec, Resources, Role
if orders["uid"] is not None:
    os.setgid(orders["uid"]); os.setuid(orders["uid"])
store = JobStore("local", "/nowhere")
backend = orders["config"].pop("backend", "yarn")
roles = (Role("worker", 1, Resources(0, 1, orders["config"].pop("gpus"))),)
spec = JobSpec("j", backend, roles=roles)
record = JobRecord("j", "j", State.PENDING, backend=backend)
config = AgentConfig(spec, record, "1", store, **orders["config"])
places = device_locks.LockDirectories(tuple(orders["sticky"]), orders["shared"])
try:
    claim = gpus.claim_gpus(config, orders["environ"], patience=orders["patience"],
                            places=places)
except gpus.NoDeviceError as exc:
    print(json.dumps({"error": str(exc)}), flush=True)
    sys.exit(1)
child = None
if orders["child"]:
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid
print(json.dumps({"devices": claim.devices, "variables": claim.variables, "note": claim.note,
                  "warning": claim.warning, "driver": claim.driver, "child": child}), flush=True)
sys.stdin.read()
claim.release()
print(flush=True)
sys.stdin.close()
"""


def build_driver(directory: Path, source: Path = _SOURCE) -> Path:
    """Compile the library; its path, named as the loader wants it."""
    library = directory / "libnvidia-ml.so.1"
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return library


def device_line(
    uuid: str, percent: int = 0, used: int = 0, processes: int = 0, code: int = 0, parent: int = -1
) -> str:
    """A line of the file that the library reads."""
    return f"{uuid} H200 {percent} {used} 143771 {processes} {code} {parent}\n"


def node_with_gpus(directory: Path, patch: pytest.MonkeyPatch, lines: str) -> Path:
    """Give the processes that this one starts a driver; return the file of its devices."""
    devices = directory / "devices"
    devices.write_text(lines)
    patch.setenv("FAKE_NVML", str(devices))
    patch.setenv("LD_LIBRARY_PATH", str(build_driver(directory).parent))
    return devices


class Claimer:
    """A process that claims devices like an agent and holds them until `end`."""

    def __init__(
        self,
        shared: Path,
        *,
        sticky: Sequence[Path] = (),
        environ: dict[str, str] | None = None,
        driver: Path | None = None,
        patience: float = 0.0,
        uid: int | None = None,
        child: bool = False,
        **config: Any,
    ) -> None:
        orders = {
            "runtime": str(RUNTIME),
            "config": {"gpus": 1, **config},
            "environ": environ or {},
            "patience": patience,
            "shared": str(shared),
            "sticky": [str(one) for one in sticky],
            "uid": uid,
            "child": child,
        }
        path = {"LD_LIBRARY_PATH": str(driver.parent)} if driver else {}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", CLAIMER, json.dumps(orders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **path},
        )

    def answer(self) -> dict[str, Any]:
        """What it got; waits for it."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def end(self) -> None:
        """Let it release and go."""
        self.process.communicate(timeout=20)

    def kill(self) -> None:
        """As YARN ends a container."""
        self.process.kill()
        self.process.communicate(timeout=20)
