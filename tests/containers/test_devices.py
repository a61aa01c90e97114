"""Devices that no cluster isolates, claimed in containers that share no files."""

from __future__ import annotations

import time

from tests.containers.cell import REPOSITORY
from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

_CLAIM = """
import sys, time
sys.path.insert(0, "/runtime")
from submarine_runtime.gpus import DeviceLocks
locks = DeviceLocks()
locks.take(["0", "1"], 1)
print(locks.held, flush=True)
time.sleep(float(sys.argv[1]))
"""
_HOLD_SECONDS = 60


def _claim(containers: Containers, name: str, uid: int, seconds: float) -> str:
    """Claim a device in a new container of a user, and return what was claimed."""
    containers.docker(
        "run", "-d", f"--name={name}", "--net=host", f"--user={uid}:{uid}",
        "-v", f"{REPOSITORY}/runtime:/runtime:ro", IMAGE, "python3", "-c", _CLAIM, str(seconds),
    )  # fmt: skip
    deadline = time.monotonic() + _HOLD_SECONDS
    while not (log := containers.docker("logs", name)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return log.strip()


def test_containers_of_all_users_claim_different_devices(containers: Containers) -> None:
    names = ("first", "second", "third", "fourth")
    try:
        assert _claim(containers, "first", 2101, _HOLD_SECONDS) == "['0']"
        assert _claim(containers, "second", 2102, _HOLD_SECONDS) == "['1']"
        assert _claim(containers, "third", 2102, 0) == "[]"
        containers.docker("rm", "-f", "first")
        assert _claim(containers, "fourth", 2102, 0) == "['0']"
    finally:
        containers.docker("rm", "-f", *names, check=False)
