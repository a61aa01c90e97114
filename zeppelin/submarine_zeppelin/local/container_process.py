"""Start and end the Python session of a note in a container of the cluster.

The container belongs to the user of the paragraph. ``submarine_kernel.remote`` submits the job of
the kernel and connects to it; its coroutines run in ``tunnel_loop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from submarine_jobs import access
from submarine_kernel import kernelspecs, remote
from submarine_runtime.translation import _
from submarine_zeppelin.local.kernel_process import (
    START_TIMEOUT,
    KernelDiedError,
    SessionProcess,
    connect_client,
)

if TYPE_CHECKING:
    from submarine_jobs.client import Session
    from submarine_kernel.remote import RemoteKernel

T = TypeVar("T")
#: Seconds between two checks of a start, and in which a stopped one is waited for.
_POLL_INTERVAL, _STOP_SECONDS = 0.1, 8.0
#: Seconds to wait for the loss of a container whose kernel has ended, for the better reason.
_LOSS_SECONDS = 3.0
_ADVICE = _("Run the paragraphs again; the next run starts a new session.")


class ContainerProcess(SessionProcess):
    """A kernel in a container. Only ``interrupt`` may be called from other threads.

    Parameters
    ----------
    name
        Name of the kernelspec.
    session_for
        Returns the job session of the user; called with the options of ``run`` in the kernelspec.
    """

    def __init__(self, name: str, session_for: Callable[[Mapping[str, Any]], Session]) -> None:
        super().__init__()
        self._name = name
        self._session_for = session_for
        self._remote: RemoteKernel | None = None
        self._loss_reported = False

    @property
    def alive(self) -> bool:
        """Whether the kernel runs, as far as is known."""
        kernel = self._remote
        return kernel is not None and not kernel.loss and kernel.code is None

    @property
    def reachable(self) -> bool:
        """Whether the container can be reached now."""
        return self._remote is not None and self._remote.connected

    def start(self, show: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        """Start a kernel, in the present container if there is one, and wait until it is ready.

        Raises
        ------
        SubmarineError
            If the kernelspec is unsuitable, the user has no access to the cluster, or no kernel
            could be started.
        """
        if self._remote is not None and not self._restart(self._remote):
            self.end()
        if self._remote is None:
            self._remote = self._acquire(show, stopped)
        self._loss_reported = False
        self.client = self.connect()
        self.client.start_channels(hb=False, control=False)
        self._await_ready(stopped)

    def _restart(self, kernel: RemoteKernel) -> bool:
        """Start a kernel in the same container; return False if it is lost."""
        self._disconnect()
        if kernel.loss:
            return False
        try:
            _in_tunnels(kernel.start())
        except remote.KernelLostError:
            return False
        return True

    def _acquire(self, show: Callable[[str], None], stopped: Callable[[], bool]) -> RemoteKernel:
        """Submit the job of the kernel and wait for its container. A stop cancels the job."""
        request = kernelspecs.container_request(self._name)
        session = self._session_for(remote.run_options(request).config_options)
        status, shown, stop = [""], "", threading.Event()
        progress = remote.StartProgress(
            remote.PendingStart(request.name),
            lambda text: status.__setitem__(0, text),
            terminal=False,
            stopped=stop.is_set,
        )
        start = asyncio.run_coroutine_threadsafe(
            remote.get_kernel(session, request, {}, progress), access.tunnel_loop()
        )
        stopped_at = 0.0
        try:
            while not start.done():
                if stopped() and not stop.is_set():
                    stop.set()
                    stopped_at = time.monotonic()
                if stop.is_set() and time.monotonic() > stopped_at + _STOP_SECONDS:
                    raise KernelDiedError(
                        _("The start was stopped; its job is cancelled when it is submitted.")
                    )
                if status[0] != shown:
                    shown = status[0]
                    show(shown)
                time.sleep(_POLL_INTERVAL)
            return start.result()
        except BaseException:
            stop.set()
            raise

    def _await_ready(self, stopped: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                self.client.wait_for_ready(timeout=1.0)
                return
            except RuntimeError:
                if not self.alive or stopped() or time.monotonic() > deadline:
                    break
        died = self.take_loss()
        self.end()
        raise died or KernelDiedError(
            _("The kernel {name} did not answer and was ended.").format(name=self._name),
            _("`%submarine logs` of its job shows why. Run the paragraph again."),
        )

    def connect(self) -> Any:
        """Create a client for the kernel."""
        return connect_client(self._remote.connection if self._remote is not None else {})

    def take_loss(self) -> KernelDiedError | None:
        """Return why the kernel has ended, the first time only; None if it has not."""
        kernel = self._remote
        if kernel is None or self.alive or self._loss_reported:
            return None
        deadline = time.monotonic() + _LOSS_SECONDS
        while not kernel.loss and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL)
        self._loss_reported = True
        reason = kernel.loss or _("The Python process of this session has ended.")
        return KernelDiedError(
            _("{reason} The variables of this note are lost.").format(reason=reason), _ADVICE
        )

    def interrupt(self) -> None:
        """Send SIGINT to the kernel and its child processes."""
        if self._remote is not None:
            asyncio.run_coroutine_threadsafe(
                self._remote.signal(signal.SIGINT), access.tunnel_loop()
            )

    def end(self) -> None:
        """End the kernel and its job."""
        self._disconnect()
        kernel, self._remote = self._remote, None
        if kernel is not None:
            _in_tunnels(remote.end_kernel(kernel, _("its note's session has ended")))

    def _disconnect(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            with contextlib.suppress(RuntimeError):
                client.stop_channels()


def _in_tunnels(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, access.tunnel_loop()).result()
