"""The process of a local job's agent or coordinator: start it detached, identify it, stop it.

A process is identified by pid, start time and boot id, so that a reused pid is never signalled.
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
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.storage import NO_SPACE
from submarine_runtime.translation import _

#: The agent becomes a child of init, so this process need not wait for it.
_DETACH = '"$@" </dev/null >>agent.log 2>&1 & echo $!'
_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_LOG = "agent.log"


def start(scratch: Path, verb: str) -> int:
    """Start ``agent`` or ``supervise`` of the runtime, and return the pid."""
    command = [sys.executable, "-I", "runtime.zip", verb, "--directory", str(scratch)]
    try:
        completed = subprocess.run(
            ["/bin/sh", "-c", _DETACH, "sh", *command],
            cwd=scratch,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=_START_SECONDS,
            check=True,
        )
        return int(completed.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as exc:
        raise ClusterError(
            _("The {verb} process could not be started here: {error}.").format(verb=verb, error=exc)
        ) from exc


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that a kernel sets for itself."""
    variables = {k: v for k, v in inherited.items() if not k.startswith(("JPY_", "KERNEL_"))}
    if "inline" in variables.get("MPLBACKEND", ""):
        del variables["MPLBACKEND"]
    return variables


def is_running(handle: Handle) -> bool:
    """Return whether the process of ``handle`` is running."""
    pid, started = int(handle["pid"]), int(handle["start_time"])
    return ProcessIdentity(pid, started, str(handle.get("boot"))).alive


def processes_in(scratch: Path) -> list[psutil.Process]:
    """Return the agents and coordinators with ``scratch``, or a directory in it, as directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        arguments = process.info["cmdline"] or []
        if len(arguments) < 4 or arguments[-2] != "--directory":
            continue
        if f"{arguments[-1]}/".startswith(f"{scratch}/"):
            found.append(process)
    return found


def _related_processes(pid: int, scratch: Path) -> list[psutil.Process]:
    """Return the descendants of ``pid``, and the other processes of the job with theirs."""
    roots = processes_in(scratch)
    with suppress(psutil.NoSuchProcess):
        roots.append(psutil.Process(pid))
    found: dict[int, psutil.Process] = {}
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            for process in (root, *root.children(recursive=True)):
                found[process.pid] = process
    found.pop(pid, None)
    return list(found.values())


def last_log_line(scratch: Path) -> str:
    """Return the last line of the agent's own log; empty if there is none."""
    try:
        lines = (scratch / _LOG).read_bytes()[-4096:].decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def reports_full_storage(line: str) -> bool:
    """Return whether a line of the agent's log reports that the job directory is full."""
    return any(os.strerror(code) in line for code in NO_SPACE)


def reports_unavailable_storage(line: str) -> bool:
    """Return whether a line of the agent's log reports that the job directory did not answer."""
    return "did not answer for" in line


def make_handle(pid: int, scratch: Path, job_dir: str) -> Handle:
    """Return the handle of a job; ``pid`` is its agent or coordinator."""
    process = ProcessIdentity.of(pid)
    return {
        "pid": pid,
        "start_time": process.started if process else 0,
        "boot": process.boot if process else "",
        "host": socket.gethostname(),
        "scratch": str(scratch),
        "job_dir": job_dir,
    }


def stop(handle: Handle) -> None:
    """Stop the agent or coordinator by SIGTERM, then kill the remaining processes of the job.

    These include agents of a coordinator that was killed.
    """
    pid, scratch = int(handle["pid"]), Path(str(handle["scratch"]))
    running = is_running(handle)
    related = _related_processes(pid if running else 0, scratch)
    # A running coordinator stops its agents itself.
    terminated = processes_in(scratch)
    if running:
        terminated = [process for process in terminated if process.pid == pid]
    for process in terminated:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    while any(_is_alive(process) for process in terminated) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in [*terminated, *related, *_related_processes(0, scratch)]:
        # psutil compares start times, so a reused pid is not signalled.
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
