"""The handle of one job: look, wait, cancel, read its log, fetch what it left behind.

Cheap to make and to throw away: the job belongs to nobody's process. Everything that it tells comes
from the job's agent, its directory or the cluster at the moment of asking.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import AgentAddress, AgentClient, JobDirectory, LogChunk
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.cancelling import cancel
from submarine_jobs.client.views import view_job
from submarine_jobs.client.waiting import wait_for_end, wait_for_success
from submarine_jobs.errors import NoAccessError, StorageError
from submarine_jobs.logs import reading as job_logs
from submarine_jobs.model import JobView, tasks
from submarine_jobs.outputs import files as job_files
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.backends import Backend, Handle
    from submarine_jobs.client.session import Session
    from submarine_jobs.model import JobSpec
    from submarine_jobs.outputs import ModelVersion, Result
    from submarine_jobs.tracking import IndexEntry


class Job:
    """One job; made by ``Session.submit`` and ``Session.job``."""

    def __init__(
        self,
        session: Session,
        job_id: str,
        name: str,
        backend: Backend,
        directory: JobDirectory,
        handle: Handle | None,
    ) -> None:
        self.session = session
        self.id = job_id
        self.name = name
        self.backend = backend
        self.directory = directory
        self.handle = handle
        self._address: AgentAddress | None = None

    def __repr__(self) -> str:
        return f"<Job {self.id}>"

    @property
    def job_dir(self) -> str:
        """URL of the job directory."""
        return self.directory.url

    @property
    def state(self) -> State:
        """The state right now; asks the cluster."""
        return self.record().state

    def record(self) -> JobRecord:
        """The job record right now: final, from the agent, or as far as the cluster tells."""
        return self.view().record

    def view(self) -> JobView:
        """The record and the end of the log, for display."""
        return view_job(self)

    def agent(self) -> AgentClient | None:
        """A client of the job's agent, or None where it does not listen (yet).

        While the file system does not answer, the address that it gave last is used.
        """
        try:
            self._address = self.directory.address()
        except NoAccessError:
            raise
        except StorageError:
            if self._address is None:
                raise
        return AgentClient(self._address) if self._address else None

    def wait(self, timeout: float | None = None, *, on_interrupt: str = "detach") -> JobRecord:
        """Wait until the job has ended.

        Parameters
        ----------
        timeout
            Seconds to wait; None: as long as it takes. The job goes on when it passes.
        on_interrupt
            What Ctrl-C does to the job: ``detach`` (nothing) or ``cancel``.

        Raises
        ------
        TimeoutError
            If the job has not ended within ``timeout``.
        KeyboardInterrupt
            After an interrupt, once the job is cancelled where that was asked for.
        """
        return wait_for_end(self, timeout, on_interrupt)

    def wait_success(self, timeout: float | None = None) -> JobRecord:
        """Wait, and raise JobFailedError unless the job succeeded."""
        return wait_for_success(self, timeout)

    def cancel(self, why: str = "") -> JobRecord:
        """End the job and keep what it has written; no error when it has ended already.

        The wish is written to the job directory first, so it holds even when neither agent nor
        cluster hears of it now: a program that has not started never will. Where the directory
        cannot be written, the job is ended through its port or the cluster; a sentence in
        ``missing`` of the record says so.

        Raises
        ------
        ClusterError
            If the job could not be told to end in any way.
        """
        started.job_settled(self.id)
        return cancel(self, why)

    @functools.cached_property
    def _spec(self) -> JobSpec | None:
        try:
            return self.directory.spec()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    @property
    def distributed(self) -> bool:
        """Whether it may have more than one task or attempt."""
        return self._spec is not None and self._spec.distributed

    @property
    def chief(self) -> str:
        """The task whose outputs are the job's, and whose log is meant where none is named."""
        return tasks.chief_of(self._spec) if self._spec else tasks.ONLY_TASK

    @property
    def task_names(self) -> list[str]:
        """All tasks that were asked for, in order of role and index."""
        return tasks.names_of(self._spec) if self._spec else [tasks.ONLY_TASK]

    def tasks(self) -> list[TaskRecord]:
        """The tasks right now: state, container, attempt, restarts, progress, what they use."""
        return self.record().tasks

    def attempts(self, task: str | None = None) -> list[str]:
        """Attempts of a task, ``e1-a1``, that have a log; oldest first."""
        return job_logs.attempts(self, task or self.chief, self.record())

    def log(
        self,
        stream: str = "stdout",
        offset: int = 0,
        limit: int = 1 << 20,
        *,
        task: str | None = None,
        attempt: str | None = None,
    ) -> LogChunk:
        """Bytes of the log from ``offset`` (negative: from the end), while running and after.

        Parameters
        ----------
        task
            For example ``worker:1``; None: the chief, or the only one.
        attempt
            For example ``e1-a1``; None: the newest.
        """
        return job_logs.read(self, stream, offset, limit, task or self.chief, attempt)

    def read_log(
        self, stream: str = "stdout", *, task: str | None = None, attempt: str | None = None
    ) -> Iterator[LogChunk]:
        """The whole log as it stands now, in order, a piece at a time."""
        return job_logs.read_through(self, stream, task or self.chief, attempt)

    def follow(
        self, *, stdout: int = 0, stderr: int = 0, tasks: Sequence[str] | str | None = None
    ) -> Iterator[LogChunk]:
        """Both streams, live, until the job has ended.

        Parameters
        ----------
        stdout, stderr
            Offsets in the newest attempt to begin at; only for one task.
        tasks
            Names of tasks, or ``"*"`` for all; None: the chief, or the only one.
        """
        from submarine_jobs.logs import follow_newest

        chosen = (tasks,) if isinstance(tasks, str) else tuple(tasks or (self.chief,))
        return follow_newest(self, chosen, {"stdout": stdout, "stderr": stderr})

    def metrics(self, task: str | None = None) -> Any:
        """What was measured of each task, while the job runs and after, as a pandas DataFrame.

        Raises
        ------
        SubmarineError
            If pandas is not installed; the message names the list of rows.
        """
        from submarine_jobs.outputs import metrics_frame

        return metrics_frame(self.directory, task)

    @property
    def result(self) -> Result:
        """Values of ``--return``; ``.ranks`` has those of every rank.

        Raises
        ------
        SubmarineError
            If the job has not succeeded or returned nothing.
        """
        from submarine_jobs.outputs import read_result

        return read_result(self)

    def outputs(self) -> list[tuple[str, int]]:
        """Files that the tasks left: (path in the job directory, bytes)."""
        return job_files.outputs(self.directory)

    def download(self, target: str | Path, part: str = layout.MODEL) -> Path:
        """Copy ``model``, ``checkpoints`` or ``tensorboard`` to a directory of this machine."""
        return job_files.download(self.directory, Path(target), part)

    def save_model(self, name: str = "") -> ModelVersion:
        """Save the model directory as it is now as a named version; training goes on."""
        from submarine_jobs.client.model_saving import save_model

        return save_model(self, name)

    def models(self) -> list[ModelVersion]:
        """Versions of the model that were saved, the oldest first."""
        from submarine_jobs.outputs import versions

        return versions(self.directory)

    def rerun(self, *, resume: bool = False, yes: bool = False) -> Job:
        """Submit the same bundle and spec again; with ``resume`` from its newest checkpoint.

        Parameters
        ----------
        yes
            Also a job of another user, whose code then runs as this one.

        Raises
        ------
        RefusedError
            If it is a job of another user and ``yes`` is not given.
        """
        from submarine_jobs.client.repetition import rerun

        return rerun(self, resume=resume, yes=yes)

    def index_entry(self) -> IndexEntry | None:
        """Row of the job in this machine's index."""
        return self.session.store.get(self.id)

    @property
    def final(self) -> bool:
        """Whether this machine knows the job's last word."""
        entry = self.index_entry()
        return entry is not None and entry.final
