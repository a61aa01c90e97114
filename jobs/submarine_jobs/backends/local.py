"""The ``local`` backend: the same agent as in a container, as a detached process of this machine.

What it knows of a job lies in ``<state dir>/local/<job id>/``, so that every process of this user
on this host sees the same. Does not limit what a program uses beyond what the agent does; how a
process is started and ended is ``localprocess``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from submarine_jobs.backends import localprocess
from submarine_jobs.backends.base import Backend, Handle, Observation, Plan, Stage, Submission
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.localization import check, copy_of, on_hdfs
from submarine_jobs.profile import Profile
from submarine_jobs.spec import JobSpec
from submarine_jobs.storage.base import Storage
from submarine_jobs.storage.local import LocalStorage
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason

_HANDLE = "handle.json"


class LocalBackend(Backend):
    """Processes on this machine."""

    name = "local"

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._storage = LocalStorage()

    def job_root(self) -> tuple[Storage, str]:
        """See ``Backend.job_root``; ``<state dir>/jobs`` unless the profile says otherwise.

        A plain path in a profile with a cluster is a path of that cluster's.
        """
        root = self._profile.job_root or ""
        if not root.startswith("file://") and (self._profile.hadoop_conf_dir or "://" in root):
            root = ""
        root = root.removeprefix("file://") or str(self._profile.state_dir / "jobs")
        return self._storage, os.path.abspath(root)

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
        errors += _localization_errors(spec)
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
            pid = localprocess.start(scratch)
            handle = localprocess.handle_of(pid, scratch, submission.job_dir)
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
                return localprocess.handle_of(process.info["pid"], scratch, "")
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
        localprocess.stop(handle)

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
        for item in submission.spec.localization:
            path, archived = copy_of(storage, job_dir, item)
            target = scratch / "program" / item.target
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if archived:
                shutil.unpack_archive(path, target, "zip")
            else:
                storage.download(path, target)

    def _observe(self, handle: Handle) -> Observation:
        host = str(handle.get("host"))
        if host != socket.gethostname():
            return Observation(
                Stage.UNKNOWN,
                detail=f"The job is a process on {host}; this machine cannot see it.",
                handle=handle,
                host=host,
            )
        if localprocess.alive(handle):
            return Observation(Stage.RUNNING, handle=handle, host=host)
        scratch = Path(str(handle.get("scratch", "")))
        said = localprocess.last_words(scratch)
        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))
        detail = f"The agent's process has ended. {said}".strip()
        return Observation(Stage.ENDED, EndReason.AGENT_LOST, detail, handle=handle, host=host)

    def _sweep(self) -> None:
        """Remove what ended jobs have left in the state directory."""
        with suppress(FileNotFoundError):
            for scratch in list((self._profile.state_dir / "local").iterdir()):
                with suppress(OSError, ValueError):
                    handle = json.loads((scratch / _HANDLE).read_text())
                    if not localprocess.alive(handle):
                        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))

    def _remove_if_recorded(self, scratch: Path, job_dir: str) -> None:
        ours = scratch.parent == self._profile.state_dir.absolute() / "local"
        if ours and job_dir and os.path.exists(f"{job_dir}/{layout.RECORD}"):
            shutil.rmtree(scratch, ignore_errors=True)


def _store(submission: Submission) -> Any:
    return submission.storage.job_store(submission.job_dir)


def _localization_errors(spec: JobSpec) -> list[str]:
    errors = [text for item in spec.localization if (text := check(item, bool(spec.rerun_of)))]
    return errors + [
        f"--localization {item.source}: the local backend has no HDFS; copy it to this machine "
        "first and name the copy."
        for item in spec.localization
        if on_hdfs(item)
    ]


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
