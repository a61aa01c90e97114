"""Submit a job: create the job directory, publish the intent, upload the files, call the backend.

The order makes an interrupted submission safe. The intent is the first file of the job directory,
so the job of a killed client is listed, and closed as never submitted. All files are in the
directory before the backend is called. ``submit`` returns once the cluster has accepted or refused
the job. Checks of the program are in ``checks``.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from submarine_jobs import inputs
from submarine_jobs.access import JobDirectory, JobHandle, create_secret
from submarine_jobs.backends import Backend, Handle, Plan, Submission
from submarine_jobs.checks import uses_data
from submarine_jobs.config import hdfs_wait
from submarine_jobs.environments import Progress, provide_environment, remove_unused
from submarine_jobs.errors import (
    ClusterError,
    NotSubmittedError,
    RefusedError,
    StorageError,
    SubmarineError,
    with_job,
)
from submarine_jobs.inputs import copy_sources
from submarine_jobs.model import PackedEnvironment, Sharing, parse_python_env
from submarine_jobs.storage import Storage, mark_modifiers
from submarine_jobs.submit.configuration import first_record, input_notes, make_submission
from submarine_jobs.submit.job_directory import free_job_id, published_intent, upload
from submarine_jobs.submit.runtime_zip import data_zip, runtime_name
from submarine_jobs.submit.validation import Validated, validate
from submarine_jobs.text import size
from submarine_jobs.tracking import IndexEntry, Origin, Owner, close, renew_while_alive
from submarine_runtime.protocol import EndReason, Event, JobRecord, Phase, State, layout
from submarine_runtime.protocol.layout import RUNTIME_CACHE
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.environments import Progress
    from submarine_jobs.model import JobSpec, Profile
    from submarine_jobs.tracking import JobStore

#: Maximum number of unfinished jobs whose intents are read to find the environments in use.
MAX_ACTIVE = 1000


class StartTakenError(SubmarineError):
    """Another attempt of the run has registered this start first; nothing was submitted."""


class SubmittedJob(JobHandle, Protocol):
    """The job object that a submission returns; implemented by ``client.Job``."""

    handle: Handle | None


JobT = TypeVar("JobT", bound=SubmittedJob)
JobT_co = TypeVar("JobT_co", bound=SubmittedJob, covariant=True)


class SubmitContext(Protocol[JobT_co]):
    """The part of a session that a submission uses; implemented by ``client.Session``."""

    profile: Profile
    store: JobStore

    @property
    def notebook(self) -> tuple[str, ...]:
        """Names of the notebook that submits; empty if there is none."""

    def backend(self, name: str | None = None) -> Backend:
        """Return the backend of that name, by default the profile's."""

    def begin_job(
        self, job_id: str, name: str, backend: Backend, directory: JobDirectory
    ) -> JobT_co:
        """Return the object of a job that is about to be submitted to its backend."""

    def refuse_job(self, job_id: str) -> None:
        """Note that the backend has refused the job."""


def submit(
    session: SubmitContext[JobT],
    spec: JobSpec,
    bundle: bytes | None,
    values: bytes | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
    claim: Callable[[str], bool] | None = None,
) -> JobT:
    """Submit a job and return once the cluster has accepted it.

    Parameters
    ----------
    spec
        The spec; its placeholders are replaced here.
    bundle, values
        The zip of the bundle and that of ``--with``; None: none.
    plan
        The plan of the backend for ``spec``, if the caller has it.
    progress
        Called with each step, ``progress("Submitting the application", 0, 0)``, and the progress of
        a packed environment: ``progress("packing", bytes, of_bytes)``.
    claim
        Called with the job's id before the job can run. If it returns False, nothing is submitted,
        and the job directory is removed.

    Raises
    ------
    StartTakenError
        If ``claim`` returns False.
    RefusedError
        If the cluster refuses the job; the job directory then has a record with the reason.
    ClusterError
        If the cluster does not answer in time.
    """
    backend = session.backend(spec.backend)
    valid = validate(backend, spec, has_bundle=bundle is not None, plan=plan)
    if valid.refusals:
        raise valid.refusals[0]
    backend.prepare(valid.spec)
    return _Submit(session, backend, valid, progress).run(bundle, values, claim)


class _Submit(Generic[JobT]):
    """One submission in progress; its methods are the steps, in order."""

    def __init__(
        self,
        session: SubmitContext[JobT],
        backend: Backend,
        valid: Validated,
        progress: Progress | None,
    ) -> None:
        self.session = session
        self.backend = backend
        self.progress = progress
        spec = self.spec = valid.spec
        self.plan = valid.plan
        self.reached = valid.reached
        self.secrets, self.keytab = valid.secrets, valid.keytab
        self.storage, self.root = backend.job_root()
        self.started = time.time()
        self.job_id = free_job_id(self.storage, self.root, spec.name, self.started)
        path = layout.job_directory(self.root, self.job_id)
        self.directory = JobDirectory(self.storage, path, shared=valid.shared)
        self.events = ClientEvents()
        self.phases: list[Phase] = []
        #: Whether the job directory exists but does not hold all files of the job yet.
        self.incomplete = False
        #: Whether the backend has refused the job and the record of that is published.
        self.refused = False

    def run(
        self, bundle: bytes | None, values: bytes | None, claim: Callable[[str], bool] | None
    ) -> JobT:
        """Submit; after a failure, leave either a record or no job directory."""
        try:
            return self._run(bundle, values, claim)
        except BaseException:
            # The renewal of the intent has ended; it would create the file again.
            with suppress(StorageError):
                if self.incomplete:
                    self.storage.delete(self.directory.path, recursive=True)
                elif self.refused:
                    self.storage.delete(self.directory.file(layout.INTENT))
            raise

    def _report(self, step: str) -> None:
        """Report a step of a submission to a cluster; the local backend needs no progress."""
        if self.progress is not None and self.backend.name != "local":
            self.progress(step, 0, 0)

    def _report_bytes(self, step: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(step, done, total)

    def _run(
        self, bundle: bytes | None, values: bytes | None, claim: Callable[[str], bool] | None
    ) -> JobT:
        self.events.state(State.SUBMITTING, _("The job's files are being uploaded."))
        environments = provide_environments(
            self.spec, self.storage, self.root, self.session.profile.state_dir, self.progress
        )
        for snapshot in self.reached.snapshots.values():
            inputs.fetch_snapshot(
                snapshot, self.storage, self.session.profile.state_dir, self._report_bytes
            )
        # The zip takes a second: build it before the intent makes the job visible.
        runtime_path = f"{self.root}/{layout.RUNTIME_CACHE}/{runtime_name()}"
        data_path = None
        streams = any(item.mode == "stream" for item in self.spec.inputs)
        commands = [role.command or "" for role in self.spec.roles]
        if streams or uses_data(_python_files(bundle), commands):
            data_path = f"{self.root}/{layout.RUNTIME_CACHE}/{data_zip().name}"
        files = {
            layout.SPEC: self.spec.to_bytes(),
            layout.SECRET: create_secret(self.job_id).to_bytes(),
            layout.SECRET_ENV: json.dumps(dict(self.secrets)).encode() if self.secrets else None,
            layout.KEYTAB: self.keytab,
            layout.BUNDLE: bundle,
            layout.VALUES: values,
            **{
                inputs.listing_file(name): listing.to_bytes()
                for name, listing in self.reached.listings.items()
            },
        }
        with published_intent(
            self.spec,
            self.session.profile,
            self.directory,
            job_id=self.job_id,
            user=self.backend.user,
            backend=self.backend.name,
            created=self.started,
            environments=environments,
        ) as intent:
            self.incomplete = True
            sizes = [len(data) for data in files.values() if data is not None]
            self._report(
                _("Uploading {count} files ({size})").format(
                    count=len(sizes), size=size(sum(sizes))
                )
            )
            upload(self.directory, runtime_path, files, data_path)
            if self.directory.shared:
                marked = self.directory.file(layout.SPEC)
                mark_modifiers(self.storage, marked, Sharing.of(self.spec.share))
            if self.spec.localization or self.spec.archives:
                self._report(_("Uploading the files of --localization and --archive"))
            copy_sources(self.directory, self.spec)
            if claim is not None and not claim(self.job_id):
                raise StartTakenError(_("Another attempt of this run has just started this job."))
            self.incomplete = False
            return self._submit(intent, runtime_path, data_path, environments)

    def _submit(
        self,
        intent: str,
        runtime_path: str,
        data_path: str | None,
        environments: dict[str, PackedEnvironment],
    ) -> JobT:
        """Submit the job to its backend; the directory is complete."""
        uploaded = time.time()
        self._store_entry(State.SUBMITTING, None)
        if self.spec.notebook or self.spec.cell_id:
            origin = Origin(self.spec.notebook or "", self.spec.cell_id or "")
            self.session.store.put_origin(self.job_id, origin)
        self.session.store.put_launch(self.job_id, self.session.notebook)
        user = self.backend.user
        self.session.store.put_owner(self.job_id, Owner(self.storage.owner_name(user), user))
        self.phases = [Phase("upload", self.started, uploaded), Phase("queue", uploaded)]
        submission = make_submission(
            self.spec,
            self.plan,
            self.directory,
            self._record(State.PENDING),
            intent=intent,
            python=self.session.profile.python,
            runtime_zip=runtime_path,
            data_zip=data_path,
            reached=self.reached,
            environments=environments,
            hdfs_wait=hdfs_wait(self.session.profile.settings),
            port_range=self.session.profile.settings.get("port_range", ""),
            on_step=self._report,
        )
        # Add the job to the list of started jobs before it can run.
        job = self.session.begin_job(self.job_id, self.spec.name, self.backend, self.directory)
        with with_job(job):
            if self.spec.lease:
                renew_while_alive(job, self.spec.lease)
            job.handle = handle = self._submit_to_backend(submission, job)
        self.events.state(State.PENDING, _("The cluster has accepted the job."), phases=self.phases)
        for text in handle.get("warnings") or ():
            self.events.warning(str(text))
        self._publish_acceptance(handle)
        application = str(handle.get("application_id") or "") or None
        record = replace(self._record(State.PENDING), application_id=application)
        record.links = {**record.links, **(handle.get("links") or {})}
        self._store_entry(State.PENDING, handle, record)
        if self.spec.backend != "local":
            with suppress(SubmarineError, OSError):  # removal is retried by a later submission
                state_dir = self.session.profile.state_dir
                cache = f"{self.root}/{layout.RUNTIME_CACHE}"
                remove_unused(
                    self.storage, cache, state_dir, lambda: environments_in_use(self.backend)
                )
        return job

    def _submit_to_backend(self, submission: Submission, job: JobT) -> Handle:
        try:
            return self.backend.submit(submission)
        except (RefusedError, NotSubmittedError) as refused:
            self.session.refuse_job(self.job_id)
            self._record_refusal(getattr(refused, "reason", EndReason.SUBMIT_FAILED), refused)
            raise
        except ClusterError:
            # It is unknown whether the cluster has the job. Keep the intent for `find`.
            self.events.warning(_("The cluster did not answer the submit."))
            raise

    def _record_refusal(self, reason: EndReason, refused: SubmarineError) -> None:
        self.events.state(State.FAILED, str(refused), reason=reason)
        record = replace(
            self._record(State.FAILED),
            finished=time.time(),
            reason=reason,
            detail=str(refused),
            events=self.events.all,
            written_by="client",
        )
        self._store_entry(State.FAILED, None, record)
        with suppress(StorageError):  # would hide the reason of the refusal
            close(self.directory, record)
            self.refused = True

    def _record(self, state: State) -> JobRecord:
        """Return the record of the job before its agent has reported."""
        return first_record(
            self.spec,
            self.plan,
            self.directory,
            job_id=self.job_id,
            user=self.backend.user,
            state=state,
            created=self.started,
            phases=self.phases,
            input_notes=input_notes(self.reached),
        )

    def _publish_acceptance(self, handle: Handle) -> None:
        """Publish the handle. A failure is not fatal, because ``find`` asks the cluster."""
        try:
            self.directory.publish_json(layout.APPLICATION, {"version": 1, **handle})
            self.directory.publish_events("client", 0, self.events.all)
        except StorageError:
            self.events.warning(_("The acceptance could not be written."))

    def _store_entry(
        self, state: State, handle: Handle | None, record: JobRecord | None = None
    ) -> None:
        profile, url, name = self.session.profile.name, self.directory.url, self.spec.name
        backend, began = self.backend.name, self.started
        entry = IndexEntry(self.job_id, name, backend, profile, url, began, state, handle, record)
        self.session.store.put(entry)


def environments_in_use(backend: Backend) -> set[str] | None:
    """Return the names of the environments of unfinished jobs; None if they are not known."""
    if backend.name == "local":
        return set()  # Its jobs use the environments of this machine as they are.
    jobs = backend.active_jobs()
    if jobs is None or len(jobs) > MAX_ACTIVE:
        return None
    storage, root = backend.job_root()
    found: set[str] = set()
    for job_id in jobs:
        if not layout.is_job_id(job_id):
            continue
        intent = JobDirectory(storage, layout.job_directory(root, job_id)).read_json(layout.INTENT)
        if isinstance(intent, dict):
            names = intent.get("environments")
            if not isinstance(names, list):
                return None
            found.update(map(str, names))
    return found


class ClientEvents:
    """The events that the client writes during a submission, in order."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def state(
        self,
        state: State,
        detail: str,
        *,
        reason: EndReason | None = None,
        phases: Sequence[Phase] = (),
    ) -> None:
        """Add a change of state."""
        data = {"phases": [vars(phase) for phase in phases]} if phases else {}
        self._add("state", state, detail, reason, data)

    def warning(self, detail: str) -> None:
        """Add a warning for the user."""
        self._add("warning", None, detail, None, {})

    def _add(
        self,
        kind: str,
        state: State | None,
        detail: str,
        reason: EndReason | None,
        data: dict[str, Any],
    ) -> None:
        number, now = len(self.all), time.time()
        self.all.append(Event(number, now, kind, "client", state, reason, detail, data=data))


def _python_files(bundle: bytes | None) -> dict[str, bytes]:
    """Return the modules in the zip of a bundle."""
    if bundle is None:
        return {}
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}


def provide_environments(
    spec: JobSpec, storage: Storage, root: str, state_dir: Path, progress: Progress | None = None
) -> dict[str, PackedEnvironment]:
    """Return role -> packed Python environment, for the roles that have one.

    Parameters
    ----------
    progress
        Called with the progress of packing and uploading; see ``environments.provide``.

    Raises
    ------
    UsageError
        If an archive does not exist, or the environment of this kernel cannot be packed.
    """
    if spec.backend == "local":  # local processes use the environment of this machine
        return {}
    found: dict[str, PackedEnvironment] = {}
    packed: dict[str, PackedEnvironment] = {}
    for role in spec.roles:
        text = role.python_env or spec.python_env
        env = parse_python_env(text)
        if not env.packed:
            continue
        if text not in packed:
            report = progress or (lambda what, done, total: None)
            cache = f"{root}/{RUNTIME_CACHE}"
            # YARN unpacks the archives of a Spark job, without the agent.
            whole = spec.spark is not None
            provided = provide_environment(env, storage, cache, state_dir, report, whole=whole)
            assert provided is not None
            packed[text] = provided.files
        found[role.name] = packed[text]
    return found
