"""Turn a spec and a bundle into a job: directory, intent, hand-over to the backend.

The order is what makes a submit safe to interrupt: everything the job needs is in its directory
before the intent is, and the intent before the backend hears of it. Does not check the program
(``checks``) and does not wait for anything but the cluster's yes or no.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs import started
from submarine_jobs.agent_orders import first_record
from submarine_jobs.backends.base import Backend, Handle, Plan, Submission
from submarine_jobs.client_events import ClientEvents
from submarine_jobs.closing import close
from submarine_jobs.coordinator_orders import with_extra_roles
from submarine_jobs.credentials import new_secret
from submarine_jobs.directory import JobDirectory
from submarine_jobs.errors import (
    ClusterError,
    NotSubmittedError,
    RefusedError,
    StorageError,
    SubmarineError,
    UsageError,
)
from submarine_jobs.ids import free_job_id
from submarine_jobs.intent import publish_intent
from submarine_jobs.job import Job
from submarine_jobs.lease import renew_while_alive
from submarine_jobs.localization import bring
from submarine_jobs.placeholders import fill_spec
from submarine_jobs.profile import hadoop_user
from submarine_jobs.store import Known, Origin
from submarine_jobs.stored_paths import reach
from submarine_jobs.submission import make_submission, provide_environments
from submarine_jobs.uploading import upload
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import JobRecord, Phase
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.environments.provide import Progress
    from submarine_jobs.session import Session
    from submarine_jobs.spec import JobSpec


def submit(
    session: Session,
    spec: JobSpec,
    bundle: bytes | None,
    values: bytes | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
    claim: Callable[[str], bool] | None = None,
) -> Job:
    """Submit a job and return once the cluster has accepted it.

    Parameters
    ----------
    spec
        What to run; its placeholders are filled in here.
    bundle, values
        The bundle's zip and the zip of ``--with``; None where there is none.
    plan
        The backend's judgement of ``spec`` where the caller has it already.
    progress
        Told how far an environment that comes along is: ``progress("packing", bytes, of_bytes)``.
    claim
        Asked with the job's id before it could run; at a False nothing of it stays.

    Raises
    ------
    PlaceTakenError
        If ``claim`` says no.
    RefusedError
        If the cluster says no; the job's directory then holds a record that says why.
    ClusterError
        If the cluster does not answer in time.
    """
    backend = session.backend(spec.backend)
    spec = with_extra_roles(spec)
    plan = plan or backend.plan(spec)
    if plan.errors:
        raise RefusedError(" ".join(plan.errors))
    if bundle is None and any(role.command is None for role in spec.roles):
        raise UsageError(
            "There is neither a program nor a --worker_launch_cmd to run.",
            "Collect cells with %%submarine, name a FILE.py, or give --worker_launch_cmd.",
        )
    with started.submitting():
        backend.prepare(spec)
        submitting = _Submit(session, backend, fill_spec(spec), plan)
        return submitting.run(bundle, values, progress, claim)


class _Submit:
    """One submit on its way; its methods are the steps, in order."""

    def __init__(self, session: Session, backend: Backend, spec: JobSpec, plan: Plan) -> None:
        self.session = session
        self.backend = backend
        self.spec = spec
        self.plan = plan
        self.storage, self.root = backend.job_root()
        self.started = time.time()
        self.job_id = free_job_id(self.storage, self.root, spec.name, self.started)
        self.directory = JobDirectory(self.storage, layout.job_directory(self.root, self.job_id))
        self.events = ClientEvents()
        self.phases: list[Phase] = []

    def run(
        self,
        bundle: bytes | None,
        values: bytes | None,
        progress: Progress | None,
        claim: Callable[[str], bool] | None,
    ) -> Job:
        self.events.state(State.SUBMITTING, "The job's files are being uploaded.")
        reached = reach(self.spec, self.storage, self.root)
        environments = provide_environments(
            self.spec, self.storage, self.root, self.session.profile.state_dir, progress
        )
        files = {
            layout.SPEC: self.spec.to_bytes(),
            layout.SECRET: new_secret(self.job_id).to_bytes(),
            layout.BUNDLE: bundle,
            layout.VALUES: values,
        }
        runtime_path = self._upload(files)
        if claim is not None and not claim(self.job_id):
            from submarine_jobs.attempts import PlaceTakenError

            self.storage.delete(self.directory.path, recursive=True)
            raise PlaceTakenError("Another attempt of this run has just started this job.")
        uploaded = time.time()
        python = self.session.profile.python
        intent = publish_intent(
            self.spec,
            self.session.profile,
            self.directory,
            job_id=self.job_id,
            backend=self.backend.name,
            created=self.started,
        )
        self._remember(State.SUBMITTING, None)
        if self.spec.notebook or self.spec.cell_id:
            origin = Origin(self.spec.notebook or "", self.spec.cell_id or "")
            self.session.store.put_origin(self.job_id, origin)
        self.phases = [Phase("upload", self.started, uploaded), Phase("queue", uploaded)]
        submission = make_submission(
            self.spec,
            self.plan,
            self.directory,
            self._record(State.PENDING),
            intent=intent,
            python=python,
            runtime_zip=runtime_path,
            reached=reached,
            environments=environments,
        )
        # Whoever answers for this process's jobs knows of it before it can run.
        job = Job(self.session, self.job_id, self.spec.name, self.backend, self.directory, None)
        started.begun(job)
        if self.spec.lease:
            renew_while_alive(job, self.spec.lease)
        job.handle = handle = self._hand_over(submission, job)
        self.events.state(State.PENDING, "The cluster has accepted the job.", phases=self.phases)
        for text in handle.get("warnings") or ():
            self.events.warning(str(text))
        self._publish_acceptance(handle)
        application = str(handle.get("application_id") or "") or None
        record = replace(self._record(State.PENDING), application_id=application)
        self._remember(State.PENDING, handle, record)
        return job

    def _upload(self, files: dict[str, bytes | None]) -> str:
        """Fill the directory; where that fails, nothing of the job stays."""
        runtime_path = upload(self.directory, self.root, files)
        try:
            bring(self.directory, self.spec)
        except UsageError:
            self.storage.delete(self.directory.path, recursive=True)
            raise
        return runtime_path

    def _hand_over(self, submission: Submission, job: Job) -> Handle:
        try:
            return self.backend.submit(submission)
        except (RefusedError, NotSubmittedError) as refused:
            started.refused(job)
            self._record_refusal(getattr(refused, "reason", EndReason.SUBMIT_FAILED), refused)
            raise
        except ClusterError:
            # Whether the cluster took it is unknown: leave the intent, `find` settles it.
            self.events.warning("The cluster did not answer the submit.")
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
        self._remember(State.FAILED, None, record)
        with suppress(StorageError):  # that would hide why it was refused
            close(self.directory, record)

    def _record(self, state: State) -> JobRecord:
        """What is known of the job on this side, before its agent speaks."""
        return first_record(
            self.spec,
            self.plan,
            self.directory,
            job_id=self.job_id,
            user=hadoop_user(self.session.profile.user),
            state=state,
            created=self.started,
            phases=self.phases,
        )

    def _publish_acceptance(self, handle: Handle) -> None:
        """Tell the directory; a failure here loses nothing, since ``find`` asks the cluster."""
        try:
            self.directory.publish_json(layout.APPLICATION, {"version": 1, **handle})
            self.directory.publish_events("client", 0, self.events.all)
        except StorageError:
            self.events.warning("The acceptance could not be written.")

    def _remember(
        self, state: State, handle: Handle | None, record: JobRecord | None = None
    ) -> None:
        profile, url, name = self.session.profile.name, self.directory.url, self.spec.name
        backend, began = self.backend.name, self.started
        known = Known(self.job_id, name, backend, profile, url, began, state, handle, record)
        self.session.store.put(known)
