"""The handle of one job: status, waiting, cancelling, logs and outputs.

A handle is cheap, and the job does not depend on it. Each call reads from the agent of the job, its
directory or the cluster.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs import logs, outputs, trained_models
from submarine_jobs.access import AgentAddress, AgentClient, JobDirectory, LogChunk
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.cancelling import cancel
from submarine_jobs.client.views import view_job
from submarine_jobs.client.waiting import wait_for_end, wait_for_success
from submarine_jobs.errors import NoAccessError, StorageError, UsageError
from submarine_jobs.logs import LogReader, list_attempts, log_key
from submarine_jobs.model import ONLY_TASK, JobView, chief_of, task_names
from submarine_jobs.outputs import download_files, list_outputs
from submarine_runtime.protocol import JobRecord, State, TaskRecord, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.backends import Backend, Handle
    from submarine_jobs.client.session import Session
    from submarine_jobs.model import JobSpec
    from submarine_jobs.outputs import ModelVersion, Result
    from submarine_jobs.tracking import IndexEntry
    from submarine_jobs.trained_models import Published


class Job:
    """One job, returned by ``Session.submit`` and ``Session.job``."""

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
        """The current state; queries the cluster."""
        return self.record().state

    def record(self) -> JobRecord:
        """Return the current record: final, from the agent, or from the cluster."""
        return self.view().record

    def view(self) -> JobView:
        """Return the record and the end of the log, for display."""
        return view_job(self)

    def agent(self) -> AgentClient | None:
        """Return a client of the agent, or None if the agent is not listening.

        If the file system does not answer, the last known address is used.
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
            Seconds to wait; None: no limit. The job continues after a timeout.
        on_interrupt
            Effect of Ctrl-C on the job: ``detach`` (none) or ``cancel``.

        Raises
        ------
        TimeoutError
            If the job has not ended within ``timeout``.
        KeyboardInterrupt
            After an interrupt; with ``cancel``, after the job was cancelled.
        """
        return wait_for_end(self, timeout, on_interrupt)

    def wait_success(self, timeout: float | None = None) -> JobRecord:
        """Wait for the end, and raise JobFailedError unless the job succeeded."""
        return wait_for_success(self, timeout)

    def cancel(self, why: str = "") -> JobRecord:
        """Cancel the job and keep its outputs; no error if it has ended already.

        The request is first written to the job directory. So a program that has not started does
        not start, even if neither agent nor cluster can be reached. If the directory cannot be
        written, the job is stopped through its port or the cluster, and ``missing`` of the record
        contains a note.

        Raises
        ------
        ClusterError
            If the request reached neither directory, agent nor cluster.
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
        """Whether the job may have more than one task or attempt."""
        return self._spec is not None and self._spec.distributed

    @property
    def chief(self) -> str:
        """The task whose outputs are those of the job, and whose log is the default."""
        return chief_of(self._spec) if self._spec else ONLY_TASK

    @property
    def task_names(self) -> list[str]:
        """The requested tasks, by role and index."""
        return task_names(self._spec) if self._spec else [ONLY_TASK]

    def tasks(self) -> list[TaskRecord]:
        """Return the current tasks: state, container, attempt, restarts, progress, resource use."""
        return self.record().tasks

    def attempts(self, task: str | None = None) -> list[str]:
        """Return the attempts of a task, such as ``e1-a1``, that have a log; oldest first."""
        return list_attempts(self, task or self.chief, self.record())

    def log(
        self,
        stream: str = "stdout",
        offset: int = 0,
        limit: int = 1 << 20,
        *,
        task: str | None = None,
        attempt: str | None = None,
    ) -> LogChunk:
        """Return bytes of the log from ``offset`` (negative: from the end), also after the end.

        Parameters
        ----------
        task
            For example ``worker:1``; None: the chief or only task.
        attempt
            For example ``e1-a1``; None: the newest one.
        """
        key = log_key(task or self.chief, attempt or "", stream)
        return LogReader(self).read(key, offset, limit)[0]

    def read_log(
        self, stream: str = "stdout", *, task: str | None = None, attempt: str | None = None
    ) -> Iterator[LogChunk]:
        """Iterate over the current log from its beginning."""
        return LogReader(self).chunks(log_key(task or self.chief, attempt or "", stream))

    def follow(
        self, *, stdout: int = 0, stderr: int = 0, tasks: Sequence[str] | str | None = None
    ) -> Iterator[LogChunk]:
        """Follow all streams until the job has ended.

        Parameters
        ----------
        stdout, stderr
            Start offsets in the newest attempt; only for one task.
        tasks
            Names of tasks, or ``"*"`` for all; None: the chief or only task.
        """
        chosen = (tasks,) if isinstance(tasks, str) else tuple(tasks or (self.chief,))
        return logs.follow_newest(self, chosen, {"stdout": stdout, "stderr": stderr})

    def metrics(self, task: str | None = None) -> Any:
        """Return the measurements of each task as a pandas DataFrame, also while the job runs.

        Raises
        ------
        SubmarineError
            If pandas is not installed; the message names an alternative.
        """
        return outputs.metrics_frame(self.directory, task)

    @property
    def result(self) -> Result:
        """The values of ``--return``; ``.ranks`` has those of every rank.

        Raises
        ------
        SubmarineError
            If the job has not succeeded or has returned nothing.
        """
        return outputs.read_result(self)

    def outputs(self) -> list[tuple[str, int]]:
        """Return the output files as (path in the job directory, bytes)."""
        return list_outputs(self.directory)

    def download(self, target: str | Path, part: str = layout.MODEL) -> Path:
        """Copy ``model``, ``checkpoints`` or ``tensorboard`` to a local directory."""
        return download_files(self.directory, Path(target), part)

    def save_model(self, name: str = "") -> ModelVersion:
        """Save the current model directory as a named version; training continues."""
        # cost: a job is mostly only shown; the other modules of this package are loaded when used.
        from submarine_jobs.client.model_saving import save_model

        version = save_model(self, name)
        trained_models.record_lineage(self, version.name)
        return version

    def stacks(self, task: str | None = None) -> dict[str, Any]:
        """Return the stacks of the running programs: ``sentence``, ``waits_for`` and ``groups``.

        Parameters
        ----------
        task
            Name of one task; None: all.

        Raises
        ------
        UsageError
            If no program of the job is running.
        ClusterError
            If the job does not answer.
        """
        record = self.record()
        agent = None if record.state.ended else self.agent()
        if agent is None or record.state is not State.RUNNING:
            raise UsageError(
                _("{job} is {state}: its program is not running, so it has no stacks.").format(
                    job=self.id, state=record.state
                ),
                _("submarine show {job} shows the state.").format(job=self.id),
            )
        return agent.stacks(task)

    def load_model(self, version: str = "", *, confirm: Callable[[str], bool] | None = None) -> Any:
        """Load a saved version, or the final model, with its framework; see docs/models-out.md."""
        return trained_models.load_model(self, version, confirm=confirm)

    def publish(
        self,
        to: str,
        version: str = "",
        *,
        aliases: Sequence[str] = (),
        overwrite: bool = False,
        name: str = "",
    ) -> Published:
        """Publish a saved version, or the final model; see ``submarine publish``.

        Parameters
        ----------
        to
            ``hdfs:///models/digits/7``, ``s3://...`` or ``mlflow[:URI]``.
        name
            Name of the registered model in MLflow; empty: the name of the job.
        """
        source = trained_models.model_source(self, version)
        if to == "mlflow" or to.startswith("mlflow:"):
            uri = to.partition(":")[2] or self.session.profile.settings.get("mlflow_uri", "")
            return trained_models.publish_to_mlflow(self, source, uri, name=name, aliases=aliases)
        return trained_models.publish_model(self, source, to, aliases=aliases, overwrite=overwrite)

    def lineage(self, version: str = "") -> dict[str, Any]:
        """Return where a saved version, or the final model, comes from."""
        moment = outputs.find_version(self.directory, version).time if version else None
        return trained_models.read_lineage(self, version, moment)

    def models(self) -> list[ModelVersion]:
        """Return the saved versions of the model, oldest first."""
        return outputs.versions(self.directory)

    def rerun(
        self, *, resume: bool = False, yes: bool = False, say: Callable[[str], None] | None = None
    ) -> Job:
        """Submit the same bundle and spec again; with ``resume``, from the newest checkpoint.

        Parameters
        ----------
        yes
            Allow a job of another user; its code then runs as this user.
        say
            Called with a sentence for each value of ``--secret`` that is read again.

        Raises
        ------
        RefusedError
            If the job belongs to another user and ``yes`` is not given, or it has ``--secret``.
        UsageError
            If a value of ``--secret`` is not in its source any more.
        """
        # cost: the modules of a submission.
        from submarine_jobs.client.repetition import rerun

        return rerun(self, resume=resume, yes=yes, say=say)

    def index_entry(self) -> IndexEntry | None:
        """Return the entry of the job in the local index."""
        return self.session.store.get(self.id)

    @property
    def final(self) -> bool:
        """Whether the local index has the final record."""
        entry = self.index_entry()
        return entry is not None and entry.final
