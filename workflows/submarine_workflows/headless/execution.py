"""Execute one notebook in one kernel: the cells, then its jobs, until the end or a stop.

An early end (failed cell, signal, time limit, dead kernel) is always handled in the same way: the
cell is interrupted, the kernel cancels or detaches the jobs, and the document records the reason
(``ending``). ``saving`` saves the document, ``interrupting`` waits for the kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from jupyter_client.kernelspec import KernelSpec
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import format_duration
from submarine_jobs.text import printable
from submarine_kernel.remote import SocketDirectory
from submarine_runtime.translation import _
from submarine_workflows.headless import barrier
from submarine_workflows.headless.client import HeadlessClient
from submarine_workflows.headless.document import add_error, mark_failed
from submarine_workflows.headless.ending import Ending, Stop, left_by_choice
from submarine_workflows.headless.interrupting import Interrupter, waited
from submarine_workflows.headless.returning import ask_for
from submarine_workflows.headless.saving import SavingManager
from submarine_workflows.headless.settings import Settings
from submarine_workflows.headless.signals import Traps

T = TypeVar("T")
TIMED_OUT = 124
_SHUTDOWN = 15.0
_SILENCE, _LONGEST = 0.3, 3.0
#: Modules started by kernelspecs that accept ipykernel's options.
_IPYKERNELS = frozenset({"ipykernel", "ipykernel_launcher", "submarine_kernel"})


def is_ipykernel(spec: KernelSpec | None) -> bool:
    """Return whether a kernel is ipykernel or the Submarine kernel, independent of its name."""
    return spec is not None and not _IPYKERNELS.isdisjoint(spec.argv)


class Execution:
    """One run.

    Parameters
    ----------
    manager
        Papermill's execution manager, which contains the document.
    client
        Client without a kernel.
    traps
        Signals of this process.
    environment
        Variables of the kernel besides those of this process.
    began
        Called with the index of each cell before it starts.
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
        self._work = Interrupter(client, self._stop, self._hurry)
        self._ending = Ending()
        self._sockets: SocketDirectory | None = None

    def run(self) -> Ending:
        """Run to the end in this thread, or in another one if it has a running event loop."""
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
        self._end_by(_("The run was stopped by {number}.").format(number=number.name), 128 + number)
        if self._traps.count > 1:
            self._hurry.set()

    def _timed_out(self, limit: float) -> None:
        self._end_by(
            _("The run took longer than {limit}.").format(limit=format_duration(limit)), TIMED_OUT
        )

    def _end_by(self, why: str, exit_code: int) -> None:
        if self._ending.stop is None:
            self._ending.stop = Stop(why, exit_code)
        self._stop.set()

    async def _with_kernel(self) -> None:
        try:
            started = await self._work.unless_stopped(self._start())
            if started:
                await self._cells()
                await self._jobs()
        except DeadKernelError as error:
            self._ending.error = error
        finally:
            ending = self._ending
            self._manager.ended_early = bool(ending.stop or ending.error or ending.unrun)
            self._ending.tell(self._manager.nb)
            await self._shut_down()

    async def _start(self) -> bool:
        client = self._client
        if client.km is None:
            client.km = client.create_kernel_manager()
        told = self._settings.headless().to_environment()
        environment = {**os.environ, **self._environment, **told}
        client.reset_execution_trackers()
        if is_ipykernel(getattr(client.km, "kernel_spec", None)):
            # Its warnings about connections concern front ends only.
            client.extra_arguments = [*client.extra_arguments, "--log-level=40"]
            self._hide_from_other_users(client.km)
        await client.async_start_new_kernel(env=environment)
        await client.async_start_new_kernel_client()
        return True

    def _hide_from_other_users(self, manager: Any) -> None:
        """Use Unix sockets: a port would expose code and output to every user of this machine."""
        if manager.transport != "tcp":
            return  # configured explicitly
        with contextlib.suppress(OSError):
            self._sockets = SocketDirectory(None)
            manager.transport, manager.ip = "ipc", self._sockets.ip

    async def _cells(self) -> None:
        for index, cell in enumerate(self._manager.nb.cells):
            if self._stop.is_set() or self._ending.error is not None:
                return
            if self._began is not None:
                self._began(index)
            self._manager.cell_start(cell, index)
            try:
                await self._work.interruptible(self._client.async_execute_cell(cell, index))
            except (CellExecutionError, CellTimeoutError) as error:
                if left_by_choice(error):
                    rest = self._manager.nb.cells[index + 1 :]
                    self._ending.unrun = sum(cell.cell_type == "code" for cell in rest)
                    return
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
        """Interrupt a cell that exceeded its time limit and still runs."""
        add_error(self._manager.nb, cell, type(error).__name__, str(error).split("\n")[0], [])
        await self._work.interrupt()

    async def _jobs(self) -> None:
        """Wait for the jobs of all cells, or end them with the run."""
        jobs, client = self._ending.jobs, self._client
        info = await self._work.interruptible(client.ask_about_kernel())
        self._manager.nb.metadata["language_info"] = info
        if info.get("name") == "python":
            if not self._stop.is_set() and self._ending.error is None:
                self._answered(await self._work.interruptible(client.ask(barrier.WAIT, jobs.take)))
            if not jobs.told and (self._stop.is_set() or self._ending.error is not None):
                code = barrier.end(self._ending.why())
                self._answered(await self._work.briefly(client.ask(code, jobs.take)))
            if jobs.told:
                await client.linger(_SILENCE, _LONGEST)
            if self._settings.return_names and not self._stop.is_set():
                question = ask_for(self._settings.return_names)
                await self._work.interruptible(client.ask(question, self._ending.returned.take))
        client.set_widgets_metadata()

    def _answered(self, reply: dict[str, Any]) -> None:
        """Record an error if the kernel could not report how its jobs ended."""
        if reply.get("status") != "ok" and self._ending.error is None:
            said = f"{reply.get('ename')}: {reply.get('evalue')}"
            self._ending.error = SubmarineError(
                _("The kernel did not report how its jobs ended: {said}.").format(
                    said=printable(said, 300)
                ),
                _("`submarine list` shows them."),
            )

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
                await waited(manager.shutdown_kernel(now=True))
        finally:
            if self._sockets is not None:
                self._sockets.remove()


def in_a_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` in an event loop: in this thread, or in another if a loop is running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1, "submarine-run") as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def _wake(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(work)
