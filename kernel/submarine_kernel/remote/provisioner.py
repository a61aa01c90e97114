"""``submarine-yarn``: the provisioner that starts Jupyter kernels in containers of a cluster.

It implements Jupyter's process interface by ``acquisition`` and ``remote_kernel``. A kernel that
dies is restarted in the same container. If the container is lost, the kernel is dead, and the next
restart by the user gets a new container.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Dict, Unicode

from submarine_jobs.access import tunnel_loop
from submarine_jobs.client import Session
from submarine_jobs.concurrency import in_thread
from submarine_jobs.model import parse_duration
from submarine_kernel.remote.acquisition import (
    cancel_in_background,
    end_kernel,
    get_kernel,
    take_over,
)
from submarine_kernel.remote.loss_notice import LossNotice
from submarine_kernel.remote.pending_starts import PendingStart, pending
from submarine_kernel.remote.remote_kernel import RemoteKernel
from submarine_kernel.remote.start_progress import StartProgress, dialog_error
from submarine_kernel.remote.submission import KernelRequest, session_of
from submarine_kernel.remote.supervisor_client import KernelLostError
from submarine_runtime.translation import _

T = TypeVar("T")

#: Additional seconds for a shutdown, compared with a process on this machine.
SHUTDOWN_SECONDS = 5.0
#: Exit code that is reported for a kernel that has lost its container.
LOST_EXIT_CODE = 1
#: Seconds in which a poll of Jupyter that waits for the notice sees the loss.
POLL_SECONDS = 0.05


class SubmarineYarnProvisioner(KernelProvisionerBase):
    """One kernel in a container; its configuration is in ``kernel.json``."""

    run = Dict(
        help="Options of `submarine run` for the container: memory, vcores, gpu, queue, python_env."
    ).tag(config=True)
    idle_timeout = Unicode(
        "1h", help="How long the container stays without a notebook server."
    ).tag(config=True)
    start_timeout = Unicode("30m", help="How long to wait for the container.").tag(config=True)

    _remote: RemoteKernel | None = None
    _session: Session | None = None
    _request: KernelRequest | None = None
    _has_process = False
    #: Done when the clients have received the notice of the loss.
    _notified: Future[None] | None = None
    _restart_limit: int | None = None
    _notice: LossNotice | None = None
    _polling: asyncio.Future[None] | None = None

    @property
    def has_process(self) -> bool:
        """Whether a kernel was started and its end was not waited for."""
        return self._has_process

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Read the request from the kernelspec; its command is not used."""
        kwargs.pop("extra_arguments", None)
        kwargs = await super().pre_launch(cmd=list(self.kernel_spec.argv), **kwargs)
        variables = kwargs["env"]
        own = {key: variables.get(key, "") for key in self.kernel_spec.env}
        notebook = str(variables.get("JPY_SESSION_NAME") or "")
        if notebook:
            own["JPY_SESSION_NAME"] = notebook
        name = getattr(self.parent, "kernel_name", "") or self.kernel_spec.display_name
        with self._start_errors():
            self._request = KernelRequest(
                name,
                dict(self.run),
                parse_duration(self.idle_timeout),
                parse_duration(self.start_timeout),
                own,
                notebook,
            )
        return kwargs

    @contextlib.contextmanager
    def _start_errors(self) -> Iterator[None]:
        """Remove a failed start from the pending kernels; raise its error for a dialog."""
        try:
            yield
        except BaseException as error:
            # jupyter_client does not remove a failed start from its pending kernels, and
            # jupyter-server does not stop while there is one.
            if starts := self._pending_kernels():
                starts.pop(self.kernel_id, None)
            raise dialog_error(error)  # noqa: B904 - mostly the same object

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start a kernel in the present container, or in a new one."""
        remote = self._remote
        if remote is not None and not remote.loss:
            try:
                await _in_tunnels(remote.start())
                self._has_process = True
                return self.connection_info
            except KernelLostError as error:
                await self._check_restart(remote)
                self.log.warning("%s A new container is requested.", error)
        if self._notice is not None:  # It listens on the sockets that the next kernel gets.
            await in_thread(self._notice.stop)
            self._notice = None
        await self._release()
        with self._start_errors():
            remote = await self._get_kernel()
        self._enable_restarts(True)
        await self._own(remote)
        return self.connection_info

    async def _own(self, remote: RemoteKernel) -> None:
        """Use a kernel, and report the loss of its container as soon as it is known."""
        self._remote = remote
        self._has_process, self._notified = True, None
        self.connection_info = _typed(remote.connection)
        loop = asyncio.get_running_loop()
        await _in_tunnels(remote.report_loss(lambda reason: self._on_loss(remote, reason, loop)))

    async def _get_kernel(self) -> RemoteKernel:
        """Take over an orphaned kernel of the same notebook, or start a new job."""
        if self._request is None:
            raise RuntimeError(_("pre_launch was not called"))
        request = self._request
        if self._session is None:
            self._session = await in_thread(lambda: session_of(request))
        session, before = self._session, dict(self.connection_info)
        start = PendingStart(request.name, request.notebook)
        terminal = self._pending_kernels() is None
        progress = StartProgress(start, self.log.info, terminal=terminal)
        with pending(start):
            try:
                return await _in_tunnels(get_kernel(session, request, before, progress))
            finally:
                progress.close()

    def _pending_kernels(self) -> dict[str, Any] | None:
        """Return the pending kernels of a server's kernel manager; None outside a server."""
        starts = getattr(getattr(self.parent, "parent", None), "_pending_kernels", None)
        return starts if isinstance(starts, dict) else None

    async def poll(self) -> int | None:
        """Return None while the kernel runs, as far as is known, else its exit code."""
        if self._remote is None:
            return 0
        if self._remote.loss and self._notified is not None:
            # Jupyter closes the connections after this answer: notify the clients first.
            await asyncio.shield(asyncio.wrap_future(self._notified))
            return LOST_EXIT_CODE
        # A kernel that cannot be reached may still run: only its job shows that it has ended.
        return self._remote.code if self._remote.connected else None

    def _on_loss(self, remote: RemoteKernel, reason: str, loop: asyncio.AbstractEventLoop) -> None:
        """Notify the clients and then Jupyter of the dead kernel; called in ``tunnel_loop``.

        A new container is requested only when the user restarts the kernel.
        """
        if remote is not self._remote:
            return
        sentence = _("{reason} Restart the kernel to get a new container.").format(reason=reason)
        self.log.error("%s (job %s)", sentence, remote.job.id)
        self._enable_restarts(False)
        notice = LossNotice(
            sentence, self.connection_info, remote.running, remote.waiting, remote.clients
        )
        self._notice = notice
        notified = asyncio.run_coroutine_threadsafe(in_thread(notice.publish), tunnel_loop())
        self._notified = notified

        def poll_soon(_unused: object) -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: its server has ended.
                loop.call_soon_threadsafe(loop.call_later, POLL_SECONDS, self._poll_now, remote)

        notified.add_done_callback(poll_soon)

    def _poll_now(self, remote: RemoteKernel) -> None:
        """Let Jupyter's restarter poll at once; by itself it polls every 3 s.

        Only a restarter that polls in this loop, and that has not stopped because it has seen the
        loss.
        """
        restarter: Any = getattr(self.parent, "_restarter", None)
        if remote is not self._remote or getattr(restarter, "_pcallback", None) is None:
            return
        if inspect.iscoroutinefunction(restarter.poll):
            restarter.stop()
            self._polling = asyncio.ensure_future(restarter.poll())

    async def _check_restart(self, remote: RemoteKernel) -> None:
        """End a restart if the container was lost in the meantime.

        A kernel ends shortly before its container does, and Jupyter restarts a kernel that has
        ended. Only a restart by the user gets a new container.

        Raises
        ------
        KernelLostError
            If the container was lost.
        """
        if not remote.loss:
            return
        if self._notified is not None:
            await asyncio.shield(asyncio.wrap_future(self._notified))
        # The restart has stopped the polls, so Jupyter does not notice the exit code.
        notify = getattr(getattr(self.parent, "_restarter", None), "_fire_callbacks", None)
        if notify is not None:
            notify("dead")
        with self._start_errors():
            raise KernelLostError(
                _("{reason} Restart the kernel to get a new container.").format(reason=remote.loss)
            )

    def _enable_restarts(self, enable: bool) -> None:
        """Enable or disable automatic restarts of a dead kernel by Jupyter."""
        restarter = getattr(self.parent, "_restarter", None)
        if restarter is None:
            return
        if enable and self._restart_limit is not None:
            restarter.restart_limit, self._restart_limit = self._restart_limit, None
        elif not enable and self._restart_limit is None:
            self._restart_limit, restarter.restart_limit = restarter.restart_limit, 0

    async def wait(self) -> int | None:
        """Wait until the kernel has ended."""
        while (code := await self.poll()) is None:
            await asyncio.sleep(0.02)
        self._has_process = False
        return code

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process group."""
        if self._remote is not None and self._remote.code is None and not self._remote.loss:
            await _in_tunnels(self._remote.signal(signum))

    async def kill(self, restart: bool = False) -> None:
        """Send SIGKILL."""
        await self.send_signal(9)

    async def terminate(self, restart: bool = False) -> None:
        """Send SIGTERM."""
        await self.send_signal(15)

    async def cleanup(self, restart: bool = False) -> None:
        """End the job, unless the kernel is being restarted."""
        if not restart:
            remote, self._remote, self._has_process = self._remote, None, False
            if remote is not None:
                await _in_tunnels(end_kernel(remote, _("its notebook was shut down")))

    async def _release(self) -> None:
        """Release a kernel after its container was lost or became unreachable."""
        remote, self._remote = self._remote, None
        if remote is None:
            return
        await _in_tunnels(remote.close())
        if not remote.loss:
            cancel_in_background(remote.job, _("its kernel did not answer"))

    async def get_provisioner_info(self) -> dict[str, Any]:
        """Return what another process needs to take over this kernel, including its key."""
        info: dict[str, Any] = await super().get_provisioner_info()
        connection = dict(info["connection_info"])
        if isinstance(connection.get("key"), bytes):
            connection["key"] = connection["key"].decode()  # JSON has no bytes.
        info["connection_info"] = connection
        if self._remote is not None and self._request is not None:
            info["job_id"] = self._remote.job.id
            info["request"] = json.loads(json.dumps(self._request.__dict__))
        return info

    async def load_provisioner_info(self, provisioner_info: dict[str, Any]) -> None:
        """Take over the kernel, with the same sockets on this machine if they are free."""
        await super().load_provisioner_info(provisioner_info)
        request = KernelRequest(**provisioner_info["request"])
        session = await in_thread(lambda: session_of(request))
        job = await in_thread(lambda: session.job(provisioner_info["job_id"]))
        self._request, self._session = request, session
        await self._own(await _in_tunnels(take_over(job, dict(self.connection_info))))

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """Return more time than for a process on this machine."""
        return recommended + SHUTDOWN_SECONDS


def _typed(connection: dict[str, Any]) -> KernelConnectionInfo:
    return cast(KernelConnectionInfo, connection)


async def _in_tunnels(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in ``tunnel_loop``, and wait for it in the present loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, tunnel_loop()))
