"""Execute one notebook in one kernel: the cells, then its jobs, until the end or a stop.

Each early end (failed cell, signal, time limit, dead kernel) is handled in the same way: the cell
is interrupted, the kernel cancels or detaches the jobs, and the document records the reason
(``result``). ``saving`` saves the document; ``kernel`` contains the client and the waits.
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
from submarine_workflows.headless.document import add_error, mark_failed
from submarine_workflows.headless.kernel import (
    WAIT_FOR_JOBS,
    HeadlessClient,
    KernelWaiter,
    await_optional,
    end_jobs_code,
    return_values_code,
)
from submarine_workflows.headless.result import RunResult, StopReason, is_successful_exit
from submarine_workflows.headless.saving import SavingManager
from submarine_workflows.headless.settings import Settings
from submarine_workflows.headless.signals import SignalRecorder

T = TypeVar("T")
TIMED_OUT = 124
_SHUTDOWN_TIMEOUT = 15.0
_QUIET_SECONDS, _MAX_LATE_SECONDS = 0.3, 3.0
#: Modules started by kernelspecs that accept ipykernel's options.
_IPYKERNELS = frozenset({"ipykernel", "ipykernel_launcher", "submarine_kernel"})


def is_ipykernel(spec: KernelSpec | None) -> bool:
    """Return whether a kernel is ipykernel or the Submarine kernel, independent of its name."""
    return spec is not None and not _IPYKERNELS.isdisjoint(spec.argv)


class Execution:
    """One run of a notebook.

    Parameters
    ----------
    manager
        Papermill's execution manager, which contains the document.
    client
        Client without a kernel.
    signals
        Signals of this process.
    environment
        Variables of the kernel besides those of this process.
    on_cell_start
        Called with the index of each cell before it starts.
    """

    def __init__(
        self,
        manager: SavingManager,
        client: HeadlessClient,
        settings: Settings,
        signals: SignalRecorder,
        environment: Mapping[str, str],
        on_cell_start: Callable[[int], None] | None = None,
    ) -> None:
        self._manager = manager
        self._client = client
        self._settings = settings
        self._signals = signals
        self._environment = environment
        self._on_cell_start = on_cell_start
        self._stop = asyncio.Event()
        self._immediate = asyncio.Event()
        self._waiter = KernelWaiter(client, self._stop, self._immediate)
        self._result = RunResult()
        self._sockets: SocketDirectory | None = None

    def run(self) -> RunResult:
        """Run to the end in this thread, or in another one if it has a running event loop."""
        return run_coroutine(self._run)

    async def _run(self) -> RunResult:
        loop = asyncio.get_running_loop()
        self._signals.listener = lambda: _wake(loop, self._signalled)
        self._signalled()
        limit = self._settings.timeout
        timer = loop.call_later(limit, self._timed_out, limit) if limit is not None else None
        saver = asyncio.ensure_future(self._manager.output.save_changes())
        try:
            await self._with_kernel()
        finally:
            self._signals.listener = None
            if timer is not None:
                timer.cancel()
            saver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await saver
        return self._result

    def _signalled(self) -> None:
        number = self._signals.received
        if number is None:
            return
        self._request_stop(
            _("The run was stopped by {number}.").format(number=number.name), 128 + number
        )
        if self._signals.count > 1:
            self._immediate.set()

    def _timed_out(self, limit: float) -> None:
        self._request_stop(
            _("The run took longer than {limit}.").format(limit=format_duration(limit)), TIMED_OUT
        )

    def _request_stop(self, why: str, exit_code: int) -> None:
        if self._result.stop is None:
            self._result.stop = StopReason(why, exit_code)
        self._stop.set()

    async def _with_kernel(self) -> None:
        try:
            started = await self._waiter.unless_stopped(self._start())
            if started:
                await self._cells()
                await self._jobs()
        except DeadKernelError as error:
            self._result.error = error
        finally:
            result = self._result
            self._manager.ended_early = bool(result.stop or result.error or result.skipped_cells)
            self._result.add_errors(self._manager.nb)
            await self._shut_down()

    async def _start(self) -> bool:
        client = self._client
        if client.km is None:
            client.km = client.create_kernel_manager()
        settings = self._settings.headless().to_environment()
        environment = {**os.environ, **self._environment, **settings}
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
            if self._stop.is_set() or self._result.error is not None:
                return
            if self._on_cell_start is not None:
                self._on_cell_start(index)
            self._manager.cell_start(cell, index)
            try:
                await self._waiter.interruptible(self._client.async_execute_cell(cell, index))
            except (CellExecutionError, CellTimeoutError) as error:
                if is_successful_exit(error):
                    rest = self._manager.nb.cells[index + 1 :]
                    self._result.skipped_cells = sum(cell.cell_type == "code" for cell in rest)
                    return
                self._result.error = error
                self._manager.cell_exception(cell, cell_index=index, exception=error)
                if isinstance(error, CellTimeoutError):
                    await self._interrupt_cell(cell, error)
            except DeadKernelError as error:
                if self._result.stop is None:
                    add_error(self._manager.nb, cell, type(error).__name__, str(error), [])
                mark_failed(self._manager.nb, cell)
                raise
            finally:
                self._manager.cell_complete(cell, cell_index=index)

    async def _interrupt_cell(self, cell: NotebookNode, error: CellTimeoutError) -> None:
        """Interrupt a cell that exceeded its time limit and still runs."""
        add_error(self._manager.nb, cell, type(error).__name__, str(error).split("\n")[0], [])
        await self._waiter.interrupt()

    async def _jobs(self) -> None:
        """Wait for the jobs of all cells, or end them with the run."""
        jobs, client = self._result.jobs, self._client
        info = await self._waiter.interruptible(client.language_info_of_kernel())
        self._manager.nb.metadata["language_info"] = info
        if info.get("name") == "python":
            if not self._stop.is_set() and self._result.error is None:
                self._check_reply(
                    await self._waiter.interruptible(client.execute_hidden(WAIT_FOR_JOBS, jobs.add))
                )
            if not jobs.received and (self._stop.is_set() or self._result.error is not None):
                code = end_jobs_code(self._result.cancellation_reason())
                self._check_reply(
                    await self._waiter.within_grace_period(client.execute_hidden(code, jobs.add))
                )
            if jobs.received:
                await client.process_late_outputs(_QUIET_SECONDS, _MAX_LATE_SECONDS)
            if self._settings.return_names and not self._stop.is_set():
                question = return_values_code(self._settings.return_names)
                await self._waiter.interruptible(
                    client.execute_hidden(question, self._result.returned.add)
                )
        client.set_widgets_metadata()

    def _check_reply(self, reply: dict[str, Any]) -> None:
        """Record an error if the kernel could not report how its jobs ended."""
        if reply.get("status") != "ok" and self._result.error is None:
            error = f"{reply.get('ename')}: {reply.get('evalue')}"
            self._result.error = SubmarineError(
                _("The kernel did not report how its jobs ended: {error}.").format(
                    error=printable(error, 300)
                ),
                _("`submarine list` shows them."),
            )

    async def _shut_down(self) -> None:
        client = self._client
        if client.km is None:
            return
        if self._immediate.is_set():
            client.shutdown_kernel = "immediate"
        manager = client.km
        try:
            await asyncio.wait_for(client._async_cleanup_kernel(), _SHUTDOWN_TIMEOUT)
        except Exception:
            with contextlib.suppress(Exception):
                await await_optional(manager.shutdown_kernel(now=True))
        finally:
            if self._sockets is not None:
                self._sockets.remove()


def run_coroutine(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
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
