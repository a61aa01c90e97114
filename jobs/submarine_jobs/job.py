"""The handle of one job: look, wait, cancel, read its log, fetch what it left behind.

Cheap to make and to throw away: the job belongs to nobody's process. Everything that it tells comes
from the job's agent, its directory or the cluster at the moment of asking.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.directory import JobDirectory
from submarine_jobs.errors import ClusterError, JobFailedError, UsageError
from submarine_jobs.live import AgentClient, LogChunk
from submarine_jobs.shipped_log import ShippedLog
from submarine_jobs.view import JobView
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.backends.base import Backend, Handle
    from submarine_jobs.session import Session
    from submarine_jobs.store import Known


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
        from submarine_jobs.viewing import view_job

        return view_job(self)

    def agent(self) -> AgentClient | None:
        """A client of the job's agent, or None where it does not listen (yet)."""
        address = self.directory.address()
        return AgentClient(address) if address else None

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
        ended = threading.Event()
        last: list[JobView] = []

        def look(view: JobView) -> None:
            last[:] = [view]
            if view.record.state.ended:
                ended.set()

        unsubscribe = self.session.watcher.subscribe(self, look)
        try:
            deadline = None if timeout is None else time.monotonic() + timeout
            # Waiting in slices lets an interrupt through on every platform.
            while not ended.wait(0.5):
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"Job {self.id} has not ended within {timeout:g} s.")
        except KeyboardInterrupt:
            if on_interrupt == "cancel":
                self.cancel("interrupted")
            raise
        finally:
            unsubscribe()
        return last[0].record

    def wait_success(self, timeout: float | None = None) -> JobRecord:
        """Wait, and raise JobFailedError unless the job succeeded."""
        record = self.wait(timeout)
        if record.state is not State.SUCCEEDED:
            raise JobFailedError(f"Job {self.id} {record.state.value}: {record.detail}")
        return record

    def cancel(self, why: str = "") -> JobRecord:
        """End the job and keep what it has written; no error when it has ended already.

        The wish is written to the job directory first, so it holds even when neither agent nor
        cluster hears of it now: a program that has not started never will.
        """
        from submarine_jobs.cancelling import cancel

        return cancel(self, why)

    def log(
        self,
        stream: str = "stdout",
        offset: int = 0,
        limit: int = 1 << 20,
        *,
        task: str = "worker:0",
    ) -> LogChunk:
        """Bytes of the log from ``offset`` (negative: from the end), while running and after."""
        if stream not in layout.STREAMS:
            raise UsageError(f"There is no log stream {stream!r}.", "Choose stdout or stderr.")
        if not self._final():
            with contextlib.suppress(ClusterError):
                agent = self.agent()
                if agent is not None:
                    return agent.log(task, stream, offset, limit)[0]
        shipped = ShippedLog(self.directory, task)
        shipped.refresh()
        return shipped.read(stream, offset, limit)

    def read_log(self, stream: str = "stdout", *, task: str = "worker:0") -> Iterator[LogChunk]:
        """The whole log as it stands now, in order, a piece at a time."""
        shipped = ShippedLog(self.directory, task)
        shipped.refresh()
        end = 0
        for chunk in shipped.read_through(stream):
            end = chunk.end
            yield chunk
        while not self._final():
            chunk = self.log(stream, end, task=task)
            if not chunk.data:
                return
            end = chunk.end
            yield chunk

    def follow(self, *, stdout: int = 0, stderr: int = 0) -> Iterator[LogChunk]:
        """Both streams from these offsets, live, until the job has ended."""
        from submarine_jobs.following import follow

        return follow(self, stdout, stderr)

    @property
    def result(self) -> Mapping[str, Any]:
        """Values of ``--return``.

        Raises
        ------
        SubmarineError
            If the job has not succeeded or returned nothing.
        """
        from submarine_jobs.result import read_result

        return read_result(self)

    def outputs(self) -> list[tuple[str, int]]:
        """Files of model, checkpoints and tensorboard: (path in the job directory, bytes)."""
        found: list[tuple[str, int]] = []
        for part in (layout.MODEL, layout.CHECKPOINTS, layout.TENSORBOARD):
            with contextlib.suppress(FileNotFoundError):
                files = self.directory.storage.walk(self.directory.file(part))
                found += [(f"{part}/{path}", size) for path, size in files]
        return found

    def download(self, target: str | Path, part: str = layout.MODEL) -> Path:
        """Copy ``model``, ``checkpoints`` or ``tensorboard`` to a directory of this machine."""
        folder = Path(target)
        for path, _ in self.directory.storage.walk(self.directory.file(part)):
            place = folder / path
            if not place.resolve().is_relative_to(folder.resolve()):
                raise UsageError(f"The job holds a file named {path!r}, which leaves {folder}.")
            place.parent.mkdir(parents=True, exist_ok=True)
            self.directory.storage.download(self.directory.file(f"{part}/{path}"), place)
        return folder

    def rerun(self) -> Job:
        """Submit the same bundle and spec again, from the job directory alone."""
        from submarine_jobs.rerun import rerun

        return rerun(self)

    def known(self) -> Known | None:
        """Row of the job in this machine's index."""
        return self.session.store.get(self.id)

    def _final(self) -> bool:
        known = self.known()
        return known is not None and known.final
