"""The ``local`` backend: the same agent as in a container, as a detached process of this machine.

A distributed job has the same coordinator as on a cluster, which starts its agents as processes.
The state of a job is in its scratch directory ``<state dir>/local/<job id>/``, which all processes
of this user on this host share. The program is limited only by its agent.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from submarine_jobs import concurrency, inputs, storage
from submarine_jobs.backends.base import (
    Backend,
    Handle,
    Observation,
    Plan,
    Stage,
    Submission,
)
from submarine_jobs.backends.job_files import localize, write_json
from submarine_jobs.backends.local import process as local_process
from submarine_jobs.backends.overview import NodeUse, Overview
from submarine_jobs.config import make_private
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.inputs import (
    is_on_hdfs,
    localization_errors,
    localized_entries,
)
from submarine_jobs.model import JobSpec, Profile, Role, parse_python_env, resolve_roles
from submarine_jobs.storage import LocalStorage, Storage
from submarine_runtime.gpus import device_numbers, visible_devices
from submarine_runtime.protocol import EndReason, layout
from submarine_runtime.translation import _

_HANDLE = "handle.json"


class LocalBackend(Backend):
    """Processes on this machine."""

    name = "local"

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._storage = LocalStorage()

    def job_root(self) -> tuple[Storage, str]:
        """See ``Backend.job_root``; the default is ``<state dir>/jobs``.

        In a profile with a cluster, a job root without ``file://`` is a path on the cluster and is
        ignored here.
        """
        root = self.profile.job_root or ""
        if not root.startswith("file://") and (self.profile.hadoop_conf_dir or "://" in root):
            root = ""
        root = root.removeprefix("file://") or str(self.profile.state_dir / "jobs")
        return self._storage, os.path.abspath(root)

    def plan(self, spec: JobSpec) -> Plan:
        """See ``Backend.plan``."""
        spec = resolve_roles(spec)
        warnings: list[str] = []
        gpus = sum(role.resources.gpus * role.instances for role in spec.roles)
        memory = sum(role.resources.memory * role.instances for role in spec.roles)
        if gpus and not list(Path("/dev").glob("nvidia[0-9]*")):
            warnings.append(
                _("The job asks for {gpus} GPU(s) and this machine shows none.").format(gpus=gpus)
            )
        if spec.gpu_topology:
            warnings.append(_("--gpu-topology has no effect on this machine."))
        total = psutil.virtual_memory().total >> 20
        if memory > total:
            warnings.append(
                _("The job asks for {memory} MiB; this machine has {total}.").format(
                    memory=memory, total=total
                )
            )
        errors = [text for role in spec.roles for text in _role_errors(spec, role)]
        if spec.spark is not None:
            errors.append(
                _(
                    "--type spark needs a cluster; on this machine, a program without --type "
                    "starts Spark itself with SparkSession.builder.master('local[*]')."
                )
            )
        containers = [
            {"what": f"{role.name}s", "role": role.name, "count": role.instances}
            | vars(role.resources)
            for role in spec.roles
        ]
        count, where = (
            spec.task_count,
            _("this machine ({host})").format(host=socket.gethostname()),
        )
        placement = _("as a process on {where}").format(where=where)
        if spec.distributed:
            placement = _("as {count} processes and a coordinator on {where}").format(
                count=count, where=where
            )
        else:
            containers = [{"role": spec.worker.name} | vars(spec.worker.resources)]
        errors = list(dict.fromkeys(errors)) + _localization_errors(spec)
        return Plan(placement, containers, warnings=warnings, errors=errors)

    def other_file_system(self, uri: str) -> tuple[Storage, str] | None:
        """See ``Backend.other_file_system``: WebHDFS at the address in the URI."""
        return storage.webhdfs_place(uri, self.user)

    def free_disk(self) -> inputs.FreeDisk | None:
        """See ``Backend.free_disk``: this machine's, for the scratch directories."""
        there = self.profile.state_dir
        while not there.exists():
            there = there.parent
        return inputs.FreeDisk(socket.gethostname(), shutil.disk_usage(there).free)

    def prepare(self, spec: JobSpec | None = None) -> None:
        """See ``Backend.prepare``; this backend has nothing to prepare."""

    def submit(self, submission: Submission) -> Handle:
        """See ``Backend.submit``."""
        if submission.plan.errors:
            raise RefusedError(submission.plan.errors[0])
        self._sweep()
        scratch = self._scratch(submission.agent.record.job_id)
        make_private(scratch)
        with concurrency.file_lock(scratch / ".lock"):  # One process at a time submits a job.
            existing = self.find(submission.agent.record.job_id)
            if existing is not None:
                return existing
            try:
                localize(submission, scratch)
            except RefusedError:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
            verb = "agent" if submission.coordinator is None else "supervise"
            pid = local_process.start(scratch, verb)
            handle = local_process.make_handle(pid, scratch, submission.job_dir)
            write_json(scratch / _HANDLE, handle)
            return handle

    def find(self, job_id: str) -> Handle | None:
        """See ``Backend.find``; also find a process whose handle was not written."""
        scratch = self._scratch(job_id)
        with suppress(FileNotFoundError, ValueError):
            handle = json.loads((scratch / _HANDLE).read_text())
            return handle if isinstance(handle, dict) else None
        for process in local_process.processes_in(scratch):
            if process.info["cmdline"][-3] in ("agent", "supervise"):
                return local_process.make_handle(process.pid, scratch, "")
        return None

    def observe(self, handles: Mapping[str, Handle]) -> dict[str, Observation]:
        """See ``Backend.observe``."""
        return {job_id: self._observe(handle) for job_id, handle in handles.items()}

    def overview(self) -> Overview:
        """See ``Backend.overview``: this machine is one node without queues."""
        memory, cores = psutil.virtual_memory(), psutil.cpu_count() or 1
        seen = visible_devices(device_numbers())
        node = NodeUse(
            host=socket.gethostname(),
            memory_total=memory.total >> 20,
            memory_used=(memory.total - memory.available) >> 20,
            vcores_total=cores,
            vcores_used=min(cores, round(os.getloadavg()[0])),
            gpus_total=len(seen.devices),
            gpus_used=sum(device in seen.busy for device in seen.devices),
        )
        return Overview(nodes=(node,))

    def stop(self, handle: Handle) -> None:
        """See ``Backend.stop``; send SIGTERM first, and SIGKILL after a few seconds."""
        if handle.get("host") != socket.gethostname():
            raise ClusterError(
                _(
                    "The job runs on {job_host}, and the local backend reaches only this machine "
                    "({host})."
                ).format(job_host=handle.get("host"), host=socket.gethostname()),
                _("Stop it there."),
            )
        local_process.stop(handle)

    def _scratch(self, job_id: str) -> Path:
        layout.month_of(job_id)  # raises for a string that is not a job id, such as a path
        return self.profile.state_dir.absolute() / "local" / job_id

    def _observe(self, handle: Handle) -> Observation:
        host = str(handle.get("host"))
        if host != socket.gethostname():
            return Observation(
                Stage.UNKNOWN,
                detail=_("The job is a process on {host}; this machine cannot see it.").format(
                    host=host
                ),
                handle=handle,
                host=host,
            )
        if local_process.is_running(handle):
            return Observation(Stage.RUNNING, handle=handle, host=host)
        scratch = Path(str(handle.get("scratch", "")))
        last_line = local_process.last_log_line(scratch)
        local_process.stop(handle)  # agents that are still running without a coordinator
        self._remove_secrets(scratch)
        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))
        distributed = (scratch / layout.COORDINATOR).exists()
        process = "coordinator" if distributed else "agent"
        reason = EndReason.COORDINATOR_LOST if distributed else EndReason.AGENT_LOST
        if local_process.reports_full_storage(last_line):
            reason = EndReason.JOB_DIRECTORY_FULL
        elif local_process.reports_unavailable_storage(last_line):
            reason = EndReason.HDFS_UNAVAILABLE
        detail = (
            _("The {process}'s process has ended. {last_line}")
            .format(process=process, last_line=last_line)
            .strip()
        )
        return Observation(Stage.ENDED, reason, detail, handle=handle, host=host)

    def _sweep(self) -> None:
        """Remove the scratch directories of ended jobs that have a record."""
        with suppress(FileNotFoundError):
            for scratch in list((self.profile.state_dir / "local").iterdir()):
                with suppress(OSError, ValueError):
                    handle = json.loads((scratch / _HANDLE).read_text())
                    if not local_process.is_running(handle):
                        self._remove_if_recorded(scratch, str(handle.get("job_dir", "")))

    def _is_scratch(self, path: Path) -> bool:
        return path.parent == self.profile.state_dir.absolute() / "local"

    def _remove_secrets(self, scratch: Path) -> None:
        """Remove the values of ``--secret``, also of a job without a record yet."""
        if self._is_scratch(scratch):
            for above in ("", "*/", "tasks/*/"):
                for path in scratch.glob(above + layout.SECRET_ENV):
                    path.unlink(missing_ok=True)

    def _remove_if_recorded(self, scratch: Path, job_dir: str) -> None:
        if self._is_scratch(scratch) and job_dir and os.path.exists(f"{job_dir}/{layout.RECORD}"):
            shutil.rmtree(scratch, ignore_errors=True)


def _localization_errors(spec: JobSpec) -> list[str]:
    return localization_errors(spec) + [
        _(
            "--localization {source}: the local backend has no HDFS; copy it to this machine "
            "first and name the copy."
        ).format(source=item.source)
        for item in localized_entries(spec)
        if is_on_hdfs(item)
    ]


def _role_errors(spec: JobSpec, role: Role) -> list[str]:
    """Return one error for each setting of a role that this backend does not support."""
    errors = []
    env = role.python_env or spec.python_env
    python = role.python or spec.python
    parsed = parse_python_env(env)
    if parsed.kind == "archive":
        errors.append(_("The local backend unpacks no archive; name a directory with path:DIR."))
    elif parsed.packed and parsed.kind != "auto":
        errors.append(
            _(
                "--python-env {env} needs a cluster: the local backend builds and packs no "
                "environment; name a directory with path:DIR."
            ).format(env=env)
        )
    elif env.startswith("docker:") or role.docker_image or spec.docker_image:
        errors.append(
            _("The local backend starts no Docker image; leave it out, or use a cluster.")
        )
    elif os.path.isabs(python) and not os.access(python, os.X_OK):
        errors.append(
            _("{python} is not a program; choose another with --python-env.").format(python=python)
        )
    if role.node_label or role.racks:
        errors.append(_("The local backend has neither node labels nor racks; leave them out."))
    return errors
