"""One run of one notebook in one kernel: cell after cell, then its jobs, whatever comes between.

What ends a run early (a failed cell, a signal, the time limit, a dead kernel) ends here in one
way: the cell is interrupted, the jobs are cancelled or left alone by the kernel, and the document
says what happened. Does not save (``saving``) and chooses no exit code for papermill.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from submarine_jobs.display.untrusted import printable
from submarine_jobs.errors import SubmarineError
from submarine_jobs.options.quantities import format_duration
from submarine_workflows.headless import barrier
from submarine_workflows.headless.client import HeadlessClient
from submarine_workflows.headless.document import add_error, last_executed, mark_failed
from submarine_workflows.headless.returning import Returned, ask_for
from submarine_workflows.headless.saving import SavingManager
from submarine_workflows.headless.settings import Settings
from submarine_workflows.headless.traps import Traps

T = TypeVar("T")
TIMED_OUT = 124
#: Seconds that an interrupted cell has before its kernel is ended.
CELL_GRACE = 8.0
#: Seconds that the kernel has to end its jobs: schedulers kill half a minute after they asked.
JOBS_GRACE = 16.0
#: Seconds after which a cell that caught an interrupt hears another.
_AGAIN = 2.0
_SHUTDOWN = 15.0
_SILENCE, _LONGEST = 0.3, 3.0


@dataclass(frozen=True)
class Stop:
    """Why a run was ended from outside.

    Attributes
    ----------
    why
        One sentence, for the document and for the log.
    exit_code
        What the process should end with.
    """

    why: str
    exit_code: int


@dataclass
class Ending:
    """How a run ended.

    Attributes
    ----------
    stop
        None: nobody stopped it.
    error
        Raised by a cell, by its limit, or by the death of the kernel; None: all cells ended well.
    jobs
        What became of the jobs.
    returned
        Values of the wanted variables.
    """

    stop: Stop | None = None
    error: Exception | None = None
    jobs: barrier.JobsEnd = field(default_factory=barrier.JobsEnd)
    returned: Returned = field(default_factory=Returned)


class Execution:
    """The run.

    Parameters
    ----------
    manager
        Papermill's account of the run, and through it the document.
    client
        Has no kernel yet.
    traps
        The signals of this process.
    environment
        Variables of the kernel beside those of this process.
    began
        Told of each cell before it starts: its index.
    """

    def __init__(
        self,
        manager: SavingManager,
        client: HeadlessClient,
        settings: Settings,
        traps: Traps,
        environment: Mapping[str, str],
        began: Callable[[int], None] | None = None,
    ) -> None:
        self._manager = manager
        self._client = client
        self._settings = settings
        self._traps = traps
        self._environment = environment
        self._began = began
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._ending = Ending()

    def run(self) -> Ending:
        """Run it to its end, in this thread, or in one of its own where a loop runs here."""
        return in_a_loop(self._run)

    async def _run(self) -> Ending:
        loop = asyncio.get_running_loop()
        self._traps.listener = lambda: _wake(loop, self._signalled)
        self._signalled()
        limit = self._settings.timeout
        timer = loop.call_later(limit, self._timed_out, limit) if limit is not None else None
        saver = asyncio.ensure_future(self._manager.output.keep())
        try:
            await self._with_kernel()
        finally:
            self._traps.listener = None
            if timer is not None:
                timer.cancel()
            saver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await saver
        return self._ending

    def _signalled(self) -> None:
        number = self._traps.received
        if number is None:
            return
        self._end_by(f"The run was ended by {number.name}.", 128 + number)
        if self._traps.count > 1:
            self._hurry.set()

    def _timed_out(self, limit: float) -> None:
        self._end_by(f"The run took longer than {format_duration(limit)}.", TIMED_OUT)

    def _end_by(self, why: str, exit_code: int) -> None:
        if self._ending.stop is None:
            self._ending.stop = Stop(why, exit_code)
        self._stop.set()

    async def _with_kernel(self) -> None:
        try:
            started = await self._unless_stopped(self._start())
            if started:
                await self._cells()
                await self._jobs()
        except DeadKernelError as error:
            self._ending.error = error
        finally:
            self._manager.ended_early = bool(self._ending.stop or self._ending.error)
            self._tell()
            await self._shut_down()

    async def _start(self) -> bool:
        client = self._client
        if client.km is None:
            client.km = client.create_kernel_manager()
        told = self._settings.headless().to_environment()
        environment = {**os.environ, **self._environment, **told}
        client.reset_execution_trackers()
        if getattr(client.km, "ipykernel", False):
            # Its warnings on how it is reached are about front ends, and there is none.
            client.extra_arguments = [*client.extra_arguments, "--log-level=40"]
        await client.async_start_new_kernel(env=environment)
        await client.async_start_new_kernel_client()
        return True

    async def _cells(self) -> None:
        for index, cell in enumerate(self._manager.nb.cells):
            if self._stop.is_set() or self._ending.error is not None:
                return
            if self._began is not None:
                self._began(index)
            self._manager.cell_start(cell, index)
            try:
                await self._interruptible(self._client.async_execute_cell(cell, index))
            except (CellExecutionError, CellTimeoutError) as error:
                self._ending.error = error
                self._manager.cell_exception(cell, cell_index=index, exception=error)
                if isinstance(error, CellTimeoutError):
                    await self._overdue(cell, error)
            except DeadKernelError as error:
                if self._ending.stop is None:
                    add_error(self._manager.nb, cell, type(error).__name__, str(error), [])
                mark_failed(self._manager.nb, cell)
                raise
            finally:
                self._manager.cell_complete(cell, cell_index=index)

    async def _overdue(self, cell: NotebookNode, error: CellTimeoutError) -> None:
        """The cell has its own limit, and still runs."""
        assert self._client.km is not None
        add_error(self._manager.nb, cell, type(error).__name__, str(error).split("\n")[0], [])
        await _waited(self._client.km.interrupt_kernel())

    async def _jobs(self) -> None:
        """Wait for the jobs of all cells, or have them ended with the run."""
        jobs, client = self._ending.jobs, self._client
        info = await self._interruptible(client.ask_about_kernel())
        self._manager.nb.metadata["language_info"] = info
        if info.get("name") == "python":
            if not self._stop.is_set() and self._ending.error is None:
                self._answered(await self._interruptible(client.ask(barrier.WAIT, jobs.take)))
            if not jobs.told and (self._stop.is_set() or self._ending.error is not None):
                code = barrier.end(self._why())
                self._answered(await self._briefly(client.ask(code, jobs.take)))
            if jobs.told:
                await client.linger(_SILENCE, _LONGEST)
            if self._settings.return_names and not self._stop.is_set():
                question = ask_for(self._settings.return_names)
                await self._interruptible(client.ask(question, self._ending.returned.take))
        client.set_widgets_metadata()

    def _why(self) -> str:
        """For the record of a job that is cancelled."""
        stop = self._ending.stop
        return f"its notebook was ended: {stop.why}" if stop else "a cell of its notebook failed"

    def _answered(self, reply: dict[str, Any]) -> None:
        """A kernel that could not say how its jobs ended does not make a run that ended well."""
        if reply.get("status") != "ok" and self._ending.error is None:
            said = f"{reply.get('ename')}: {reply.get('evalue')}"
            self._ending.error = SubmarineError(
                f"The kernel did not say how its jobs ended: {printable(said, 300)}.",
                "`submarine list` does.",
            )

    def _tell(self) -> None:
        """Put what the cells do not say themselves below them."""
        notebook, stop = self._manager.nb, self._ending.stop
        barrier.show_failures(notebook, self._ending.jobs)
        cell = last_executed(notebook)
        if stop is not None and cell is not None:
            jobs = "Its jobs go on." if self._ending.jobs.detached else ""
            said = f"{stop.why} {jobs}".strip()
            add_error(notebook, cell, "RunEnded", said, [f"RunEnded: {said}"])
        elif isinstance(self._ending.error, SubmarineError) and cell is not None:
            add_error(notebook, cell, "SubmarineError", str(self._ending.error), [])
        elif isinstance(self._ending.error, DeadKernelError) and cell is not None:
            mark_failed(notebook, cell)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of ``work``, which is dropped when the run is to end."""
        task = asyncio.ensure_future(work)
        await self._first(task, self._stop)
        if task.done():
            return task.result()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return None

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, during which the kernel is interrupted when the run is to end.

        Raises
        ------
        DeadKernelError
            If the kernel does not let go of it in time; it is to be ended then.
        """
        assert self._client.km is not None
        task = asyncio.ensure_future(work)
        await self._first(task, self._stop)
        deadline = asyncio.get_running_loop().time() + CELL_GRACE
        while not task.done():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self._hurry.is_set():
                await self._drop(task)
            await _waited(self._client.km.interrupt_kernel())
            await self._first(task, self._hurry, timeout=min(_AGAIN, left))
        return task.result()

    async def _briefly(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, for which an ending run has some time left."""
        task = asyncio.ensure_future(work)
        await self._first(task, self._hurry, timeout=JOBS_GRACE)
        if not task.done():
            await self._drop(task)
        return task.result()

    async def _drop(self, task: asyncio.Task[Any]) -> None:
        self._client.shutdown_kernel = "immediate"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, DeadKernelError):
            await task
        raise DeadKernelError("The kernel did not answer to an interrupt.")

    async def _first(
        self, task: asyncio.Task[Any], event: asyncio.Event, timeout: float | None = None
    ) -> None:
        """Return once ``task`` is done, ``event`` is set, or the time is over."""
        if task.done():
            return
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait(
                {task, waiting}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()

    async def _shut_down(self) -> None:
        client = self._client
        if client.km is None:
            return
        if self._hurry.is_set():
            client.shutdown_kernel = "immediate"
        manager = client.km
        try:
            await asyncio.wait_for(client._async_cleanup_kernel(), _SHUTDOWN)
        except Exception:
            with contextlib.suppress(Exception):
                await _waited(manager.shutdown_kernel(now=True))


def in_a_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` in an event loop: here, or in a thread where one runs here already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "submarine-run") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def _wake(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(work)


async def _waited(result: Awaitable[Any] | None) -> None:
    if result is not None:
        await result
