"""The agent of a local job as a process: start it detached, know it again, end it.

A process is known by its pid, its start time and the machine's boot, so that a pid which was given
anew is never signalled. Knows nothing of jobs; that is ``local``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from submarine_jobs.backends.base import Handle
from submarine_jobs.errors import ClusterError
from submarine_runtime.agent.processes import read_process

#: Detaches for good: the agent becomes a child of init, so nobody has to wait for it.
_DETACH = '"$@" </dev/null >>agent.log 2>&1 & echo $!'
_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_LOG = "agent.log"


def start(scratch: Path) -> int:
    """Start the agent; its pid."""
    agent = [sys.executable, "-I", "runtime.zip", "agent", "--directory", str(scratch)]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _DETACH, "sh", *agent],
            cwd=scratch,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=_START_SECONDS,
            check=True,
        )
        return int(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as exc:
        raise ClusterError(f"The agent could not be started on this machine: {exc}.") from exc


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without what a kernel sets for itself only."""
    variables = {k: v for k, v in inherited.items() if not k.startswith(("JPY_", "KERNEL_"))}
    if "inline" in variables.get("MPLBACKEND", ""):
        del variables["MPLBACKEND"]
    return variables


def alive(handle: Handle) -> bool:
    """Whether that very process still runs."""
    process = read_process(int(handle["pid"]))
    if process is None or process.zombie or handle.get("boot") != _boot_id():
        return False
    return process.start == int(handle["start_time"])


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def last_words(scratch: Path) -> str:
    """The agent's last line outside the job's log; empty if there is none."""
    try:
        lines = (scratch / _LOG).read_bytes()[-4096:].decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def handle_of(pid: int, scratch: Path, job_dir: str) -> Handle:
    """What the backend calls a job whose agent is process ``pid``."""
    process = read_process(pid)
    return {
        "pid": pid,
        "start_time": process.start if process else 0,
        "boot": _boot_id(),
        "host": socket.gethostname(),
        "scratch": str(scratch),
        "job_dir": job_dir,
    }


def stop(handle: Handle) -> None:
    """End the agent, which gets a moment for its last words, and all that it has started."""
    if not alive(handle):
        return
    pid = int(handle["pid"])
    family = _descendants(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while alive(handle) and time.monotonic() < deadline:
        time.sleep(0.02)
    if alive(handle):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in family:
        # psutil compares start times: a pid that was given anew is left alone.
        with suppress(psutil.NoSuchProcess):
            process.kill()
