"""A backend outside of the project: each job is a process of this machine, in one directory.

The "system" is a directory, the setting ``toy_directory``; a missing directory stands for a system
that does not answer. A job is the directory ``<system>/<job id>`` with the files that ``localize``
writes, and the process number of its agent (of the supervisor of the coordinator, if the job has
several tasks). Nothing is kept in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from submarine_jobs.backends import (
    Backend,
    Handle,
    Observation,
    Plan,
    Stage,
    Submission,
    localize,
)
from submarine_jobs.concurrency import file_lock
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.inputs import is_on_hdfs, localization_errors, localized_entries
from submarine_jobs.model import JobSpec, Profile, Role, parse_python_env, resolve_roles
from submarine_jobs.storage import LocalStorage, Storage
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.protocol import EndReason, layout

_HANDLE = "handle.json"
_START_SECONDS, _STOP_SECONDS = 10.0, 3.0
#: The process becomes a child of init, so that the client may end.
_DETACH = '"$@" </dev/null >>toy.log 2>&1 & echo $!'


class ToyBackend(Backend):
    """Jobs as subprocesses."""

    name = "toy"
    settings = {"toy_directory": "Directory in which the toy backend keeps running jobs."}

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        given = profile.settings.get("toy_directory")
        self._directory = Path(given) if given else profile.state_dir.absolute() / "toy"
        if not given:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def job_root(self) -> tuple[Storage, str]:
        """See ``Backend.job_root``."""
        root = (self.profile.job_root or "").removeprefix("file://")
        return LocalStorage(), os.path.abspath(root or str(self.profile.state_dir / "toy-jobs"))

    def plan(self, spec: JobSpec) -> Plan:
        """See ``Backend.plan``."""
        self._check_system()
        spec = resolve_roles(spec)
        errors = [text for role in spec.roles for text in _errors(spec, role)]
        memory = sum(role.resources.memory * role.instances for role in spec.roles)
        total = psutil.virtual_memory().total >> 20
        if memory > total:
            errors.append(f"The job asks for {memory} MiB; this machine has {total}.")
        containers = [
            {"role": role.name, "count": role.instances} | vars(role.resources)
            for role in spec.roles
        ]
        errors += localization_errors(spec)
        errors += [
            f"--localization {item.source}: the toy backend has no HDFS; copy it to this machine."
            for item in localized_entries(spec)
            if is_on_hdfs(item)
        ]
        placement = "as processes of the toy backend"
        return Plan(placement, containers, errors=list(dict.fromkeys(errors)))

    def prepare(self, spec: JobSpec | None = None) -> None:
        """See ``Backend.prepare``: there is nothing to prepare."""

    def submit(self, submission: Submission) -> Handle:
        """See ``Backend.submit``."""
        self._check_system()
        if submission.plan.errors:
            raise RefusedError(submission.plan.errors[0])
        job_id = submission.agent.record.job_id
        scratch = self._scratch(job_id)
        scratch.mkdir(mode=0o700, exist_ok=True)
        with file_lock(scratch / ".lock"):
            existing = self.find(job_id)
            if existing is not None:
                return existing
            try:
                localize(submission, scratch)
            except RefusedError:
                shutil.rmtree(scratch)
                raise
            verb = "agent" if submission.coordinator is None else "supervise"
            handle = {"job_dir": submission.job_dir, "process": _start(scratch, verb)}
            (scratch / _HANDLE).write_text(json.dumps({**handle, "job_id": job_id}))
        return {**handle, "job_id": job_id}

    def find(self, job_id: str) -> Handle | None:
        """See ``Backend.find``."""
        self._check_system()
        try:
            found = json.loads((self._scratch(job_id) / _HANDLE).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def observe(self, handles: Mapping[str, Handle]) -> dict[str, Observation]:
        """See ``Backend.observe``."""
        self._check_system()
        return {job_id: self._observe(handle) for job_id, handle in handles.items()}

    def stop(self, handle: Handle) -> None:
        """See ``Backend.stop``: SIGTERM, and SIGKILL after some seconds."""
        self._check_system()
        process = ProcessIdentity.parse(str(handle["process"]))
        if process is not None and process.signal(signal.SIGTERM):
            deadline = time.monotonic() + _STOP_SECONDS
            while process.alive and time.monotonic() < deadline:
                time.sleep(0.02)
        self._kill(str(handle["job_id"]))

    def _check_system(self) -> None:
        if not self._directory.is_dir():
            raise ClusterError(
                f"The toy system {self._directory} does not answer.", "Create its directory."
            )

    def _scratch(self, job_id: str) -> Path:
        layout.month_of(job_id)  # Raises for a string that is not a job id, such as a path.
        return self._directory / job_id

    def _observe(self, handle: Handle) -> Observation:
        process = ProcessIdentity.parse(str(handle["process"]))
        if process is not None and process.alive:
            return Observation(Stage.RUNNING, handle=handle)
        job_id = str(handle["job_id"])
        scratch = self._scratch(job_id)
        # Agents of a coordinator that is gone, and what is not needed after the record.
        self._kill(job_id)
        distributed = (scratch / layout.COORDINATOR).exists()
        if os.path.exists(f"{handle['job_dir']}/{layout.RECORD}"):
            shutil.rmtree(scratch, ignore_errors=True)
        lost = EndReason.COORDINATOR_LOST if distributed else EndReason.AGENT_LOST
        return Observation(Stage.ENDED, lost, "Its process has ended.", handle=handle)

    def _kill(self, job_id: str) -> None:
        scratch = str(self._scratch(job_id))
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if any(f"{word}/".startswith(f"{scratch}/") for word in words):
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue


def _start(scratch: Path, verb: str) -> str:
    """Start the agent or the supervisor; return the identity of the process."""
    command = [sys.executable, "-I", "runtime.zip", verb, "--directory", str(scratch)]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _DETACH, "sh", *command],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=_START_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as exc:
        raise ClusterError(f"The {verb} could not be started: {exc}.") from exc
    process = ProcessIdentity.of(int(done.stdout))
    return str(process) if process else "0:0"


def _errors(spec: JobSpec, role: Role) -> list[str]:
    """Return one sentence for each thing that this backend does not have."""
    errors = []
    env = parse_python_env(role.python_env or spec.python_env)
    if env.kind not in ("host", "path") or role.docker_image or spec.docker_image:
        errors.append("The toy backend uses the Python of this machine: --python-env path:DIR.")
    if role.node_label or role.racks:
        errors.append("The toy backend has neither node labels nor racks; leave them out.")
    if role.resources.gpus:
        errors.append("The toy backend has no GPUs; leave --gpu out.")
    return errors
