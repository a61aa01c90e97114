"""Agent or coordinator of a local job as a process: start it detached, know it again, end it.

A process is known by its pid, its start time and the machine's boot, so that a pid which was given
anew is never signalled. Knows nothing of jobs; that is ``local``.
"""

from __future__ import annotations

import os
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
from submarine_runtime.processes import read_process
from submarine_runtime.storage import NO_SPACE

#: Detaches for good: the agent becomes a child of init, so nobody has to wait for it.
_DETACH = '"$@" </dev/null >>agent.log 2>&1 & echo $!'
_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_LOG = "agent.log"


def start(scratch: Path, verb: str) -> int:
    """Start ``agent`` or ``supervise``; its pid."""
    agent = [sys.executable, "-I", "runtime.zip", verb, "--directory", str(scratch)]
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
        raise ClusterError(f"The {verb} process could not be started here: {exc}.") from exc


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


def of_directory(scratch: Path) -> list[psutil.Process]:
    """Our own processes whose directory is ``scratch`` or lies in it, agents of tasks included."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        arguments = process.info["cmdline"] or []
        if len(arguments) < 4 or arguments[-2] != "--directory":
            continue
        if f"{arguments[-1]}/".startswith(f"{scratch}/"):
            found.append(process)
    return found


def _family(pid: int, scratch: Path) -> list[psutil.Process]:
    """What process ``pid`` has started, and what else works for the same job, with children."""
    roots = of_directory(scratch)
    with suppress(psutil.NoSuchProcess):
        roots.append(psutil.Process(pid))
    found: dict[int, psutil.Process] = {}
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            for process in (root, *root.children(recursive=True)):
                found[process.pid] = process
    found.pop(pid, None)
    return list(found.values())


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


def lacked_room(said: str) -> bool:
    """Whether last words tell of a job directory that took nothing more."""
    return any(os.strerror(code) in said for code in NO_SPACE)


def lacked_storage(said: str) -> bool:
    """Return whether the last words report a job directory that did not answer."""
    return "did not answer for" in said


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
    """End agent or coordinator, which get a moment for their last words, and all that they began.

    Also ends what has outlived them: agents whose coordinator was killed.
    """
    pid, scratch = int(handle["pid"]), Path(str(handle["scratch"]))
    ours = alive(handle)
    family = _family(pid if ours else 0, scratch)
    # A living coordinator ends its agents itself.
    asked = of_directory(scratch)
    if ours:
        asked = [process for process in asked if process.pid == pid]
    for process in asked:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    while any(_runs(process) for process in asked) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in [*asked, *family, *_family(0, scratch)]:
        # psutil compares start times: a pid that was given anew is left alone.
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
