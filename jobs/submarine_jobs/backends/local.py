"""The ``local`` backend: the same agent as in a container, as a detached process of this machine.

What it knows of a job lies in ``<state dir>/local/<job id>/``, so that every process of this user
on this host sees the same. Does not limit what a program uses beyond what the agent does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from submarine_jobs.backends.base import Backend, Handle, Observation, Plan, Stage, Submission
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.profile import Profile
from submarine_jobs.spec import JobSpec
from submarine_jobs.storage.base import Storage
from submarine_jobs.storage.local import LocalStorage
from submarine_runtime.agent.processes import read_process
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason

#: Detaches for good: the agent becomes a child of init, so nobody has to wait for it.
_DETACH = '"$@" </dev/null >>agent.log 2>&1 & echo $!'
_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_HANDLE = "handle.json"
_LOG = "agent.log"


class LocalBackend(Backend):
    """Processes on this machine."""

    name = "local"

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._storage = LocalStorage()

    def job_root(self) -> tuple[Storage, str]:
        """See ``Backend.job_root``; ``<state dir>/jobs`` unless the profile says otherwise."""
        root = self._profile.job_root or str(self._profile.state_dir / "jobs")
        return self._storage, os.path.abspath(root.removeprefix("file://"))

    def plan(self, spec: JobSpec) -> Plan:
        """See ``Backend.plan``."""
        worker = spec.worker
        size = worker.resources
        warnings, errors = [], []
        if len(spec.roles) != 1 or worker.instances != 1:
            errors.append("The local backend runs one task; ask for one worker and no other role.")
        if size.gpus and not list(Path("/dev").glob("nvidia[0-9]*")):
            warnings.append(f"The job asks for {size.gpus} GPU(s) and this machine shows none.")
        total = psutil.virtual_memory().total >> 20
        if size.memory > total:
            warnings.append(f"The job asks for {size.memory} MiB; this machine has {total}.")
        if spec.python and not os.access(spec.python, os.X_OK):
            errors.append(f"{spec.python} is not a program; choose another with --python-env.")
        container = {
            "role": worker.name,
            "memory": size.memory,
            "vcores": size.vcores,
            "gpus": size.gpus,
        }
        placement = f"as a process on this machine ({socket.gethostname()})"
        return Plan(placement, [container], warnings=warnings, errors=errors)

    def prepare(self) -> None:
        """See ``Backend.prepare``; there is nothing to start."""

    def submit(self, submission: Submission) -> Handle:
        """See ``Backend.submit``."""
        if submission.plan.errors:
            raise RefusedError(submission.plan.errors[0])
        self._sweep()
        scratch = self._scratch(submission.agent.job_id)
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(scratch):
            found = self.find(submission.agent.job_id)
            if found is not None:
                return found
            self._localise(submission, scratch)
            pid = _start(scratch)
            handle = self._handle(scratch, pid, submission.job_dir)
            _write_json(scratch / _HANDLE, handle)
            return handle

    def find(self, job_id: str) -> Handle | None:
        """See ``Backend.find``; a process that was started but not written down is found too."""
        scratch = self._scratch(job_id)
        with suppress(FileNotFoundError, ValueError):
            handle = json.loads((scratch / _HANDLE).read_text())
            return handle if isinstance(handle, dict) else None
        for process in psutil.process_iter(["cmdline", "pid"]):
            arguments = process.info["cmdline"] or []
            if arguments[-2:] == ["--directory", str(scratch)]:
                return self._handle(scratch, process.info["pid"], "")
        return None

    def observe(self, handles: Mapping[str, Handle]) -> dict[str, Observation]:
        """See ``Backend.observe``."""
        return {job_id: self._observe(handle) for job_id, handle in handles.items()}

    def stop(self, handle: Handle) -> None:
        """See ``Backend.stop``; the agent gets a moment for its last words."""
        if handle.get("host") != socket.gethostname():
            raise ClusterError(
                f"The job runs on {handle.get('host')}, and the local backend reaches only this "
                f"machine ({socket.gethostname()}).",
                "Stop it there.",
            )
        if not _alive(handle):
            return
        pid = int(handle["pid"])
        family = _descendants(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while _alive(handle) and time.monotonic() < deadline:
            time.sleep(0.02)
        if _alive(handle):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in family:
            # psutil compares start times: a pid that was given anew is left alone.
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _scratch(self, job_id: str) -> Path:
        layout.month_of(job_id)  # refuses what is not a job id and might be a path
        return self._profile.state_dir.absolute() / "local" / job_id

    def _localise(self, submission: Submission, scratch: Path) -> None:
        storage, job_dir = submission.storage, submission.job_dir
        agent = replace(
            submission.agent, backend=self.name, listen="127.0.0.1", store=_store(submission)
        )
        _write_json(scratch / "agent.json", agent.to_json())
        for name in (layout.SECRET, layout.BUNDLE, layout.VALUES):
            if storage.stat(f"{job_dir}/{name}") is not None:
                storage.download(f"{job_dir}/{name}", scratch / name)
                (scratch / name).chmod(0o600)
        storage.download(submission.runtime_zip, scratch / "runtime.zip")

    def _handle(self, scratch: Path, pid: int, job_dir: str) -> Handle:
        process = read_process(pid)
        return {
            "pid": pid,
            "start_time": process.start if process else 0,
            "boot": _boot_id(),
            "host": socket.gethostname(),
            "scratch": str(scratch),
            "job_dir": job_dir,
        }

    def _observe(self, handle: Handle) -> Observation:
        host = str(handle.get("host"))
        if host != socket.gethostname():
            return Observation(
                Stage.UNKNOWN,
                detail=f"The job is a process on {host}; this machine cannot see it.",
                handle=handle,
                host=host,
            )
        if _alive(handle):
            return Observation(Stage.RUNNING, handle=handle, host=host)
        scratch = Path(str(handle.get("scratch", "")))
        said = _last_words(scratch / _LOG)
        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))
        detail = f"The agent's process has ended. {said}".strip()
        return Observation(Stage.ENDED, EndReason.AGENT_LOST, detail, handle=handle, host=host)

    def _sweep(self) -> None:
        """Remove what ended jobs have left in the state directory."""
        with suppress(FileNotFoundError):
            for scratch in list((self._profile.state_dir / "local").iterdir()):
                with suppress(OSError, ValueError):
                    handle = json.loads((scratch / _HANDLE).read_text())
                    if not _alive(handle):
                        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))

    def _remove_if_recorded(self, scratch: Path, job_dir: str) -> None:
        ours = scratch.parent == self._profile.state_dir.absolute() / "local"
        if ours and job_dir and os.path.exists(f"{job_dir}/{layout.RECORD}"):
            shutil.rmtree(scratch, ignore_errors=True)


def _store(submission: Submission) -> Any:
    return submission.storage.job_store(submission.job_dir)


def _start(scratch: Path) -> int:
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


def _alive(handle: Handle) -> bool:
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


def _last_words(log: Path) -> str:
    try:
        lines = log.read_bytes()[-4096:].decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    temporary = path.with_name(f".tmp-{path.name}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    temporary.rename(path)


@contextmanager
def _locked(scratch: Path) -> Iterator[None]:
    """Only one process at a time submits the same job."""
    descriptor = os.open(scratch / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
