"""A kernel in a container, seen by its owner: sockets, connection to the supervisor, loss.

The coroutines run in ``tunnel_loop``. Other threads only read the attributes of ``RemoteKernel``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import TunnelError, TunnelPorts
from submarine_jobs.concurrency import in_thread
from submarine_jobs.display import sentence
from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote.container.kernel_process import CHANNELS
from submarine_kernel.remote.running_requests import RunningRequests
from submarine_kernel.remote.sent_requests import SentRequests
from submarine_kernel.remote.socket_directory import SocketDirectory
from submarine_kernel.remote.submission import cancel_job
from submarine_kernel.remote.supervisor_client import (
    ANSWER_SECONDS,
    KernelLostError,
    SupervisorClient,
)
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import AgentAddress
    from submarine_jobs.client import Job

log = logging.getLogger(__name__)

#: Seconds between two pings; seconds without a message after which the connection is broken.
PING, DEAD = 3.0, 12.0
#: Seconds between two attempts to reconnect, first and at most.
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
#: Longest pause in the first ``EARLY_SECONDS`` seconds, in which the cluster reports most losses.
EARLY_PAUSE, EARLY_SECONDS = 0.25, 6.0


class RemoteKernel:
    """The kernel in the container of a job.

    Parameters
    ----------
    take
        ``own``, ``orphan`` or ``look``, see ``container.supervisor``.

    Attributes
    ----------
    code
        Exit code of the last kernel; None while it runs.
    loss
        Why the container is lost; empty while it is not known to be lost.
    connected
        Whether the supervisor can be reached now.
    clients
        Number of clients that listened for output when the container was lost.
    """

    def __init__(self, job: Job, take: str = "own") -> None:
        self.job = job
        self.code: int | None = None
        self.loss = ""
        self.connected = False
        self.clients = 0
        self.key = b""
        self.scheme = ""
        self._take = take
        self._run = 0
        self._sent = SentRequests()
        names = [f"kernel-{name}" for name in CHANNELS]
        self._ports = TunnelPorts(names, {"kernel-shell": self._sent.tap})
        self._directory: SocketDirectory | None = None
        self._supervisor = SupervisorClient(job.id, self._on_message)
        self._requests: RunningRequests | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._report: Callable[[str], None] | None = None

    @property
    def running(self) -> list[dict[str, Any]]:
        """Headers of the requests that are running, or were running at the loss."""
        return self._requests.all() if self._requests is not None else []

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """Headers of the requests that are queued after the running ones."""
        started = {header.get("msg_id") for header in self.running}
        return [header for header in self._sent.all() if header.get("msg_id") not in started]

    @property
    def connection(self) -> dict[str, Any]:
        """The content of the connection file for clients on this machine."""
        where = self._directory.connection if self._directory is not None else {}
        return {"key": self.key, "signature_scheme": self.scheme, **where}

    async def open(self, address: AgentAddress, before: Mapping[str, Any] | None = None) -> None:
        """Become the owner of the kernel, and listen for its clients.

        Parameters
        ----------
        before
            Connection of the previous kernel, as ``connection``; its sockets are used if possible.

        Raises
        ------
        KernelLostError
            If the supervisor does not answer, or has an owner.
        """
        try:
            await self._connect(address, ANSWER_SECONDS)
            state_dir = self.job.session.profile.state_dir
            self._directory = await in_thread(lambda: SocketDirectory(state_dir, before))
            await self._listen_for_clients()
        except (TunnelError, TimeoutError) as error:
            raise KernelLostError(
                _("The kernel of job {id} cannot be reached: {error}.").format(
                    id=self.job.id, error=error
                )
            ) from error
        except OSError as error:
            raise KernelLostError(
                _(
                    "The sockets of the kernel of {id} cannot be created on this machine: {error}."
                ).format(id=self.job.id, error=error)
            ) from error
        if self._take != "look":  # Only an owner sends pings.
            self._connecting = asyncio.get_running_loop().create_task(self._keep_connected(address))
            self._track_requests()

    async def report_loss(self, report: Callable[[str], None]) -> None:
        """Call ``report`` with the reason as soon as the container is known to be lost.

        It is called in ``tunnel_loop``, after the sockets on this machine were closed.
        """
        self._report = report
        if self.loss and (self._connecting is None or self._connecting.done()):
            report(self.loss)

    async def start(self, key: bytes = b"") -> None:
        """Start a kernel in the same container, after the last one has ended.

        Parameters
        ----------
        key
            Key of existing clients. A running kernel with another key is replaced.

        Raises
        ------
        KernelLostError
            If the container is lost, or if its supervisor does not answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ANSWER_SECONDS
        self._sent.clear()
        while True:
            while not (self.connected or self.loss) and loop.time() < deadline:
                await asyncio.sleep(0.05)
            try:
                message = {"type": "start", "key": key.decode()}
                answer = await self._supervisor.request(message, "started")
                break
            except KernelLostError:
                # The connection may have ended because the container was lost.
                if self.loss or loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.05)
        self._run, self.code = int(answer["run"]), None
        self.key = key or self.key
        await self._listen_for_clients()
        self._track_requests()

    async def signal(self, number: int) -> None:
        """Send a signal to the kernel, if the supervisor is connected."""
        self._supervisor.send({"type": "signal", "number": number})

    async def leave(self) -> bool:
        """End the kernel and its job; return whether the supervisor has confirmed it."""
        confirmed = False
        with contextlib.suppress(KernelLostError):
            await self._supervisor.request({"type": "leave"}, "bye", 3.0)
            confirmed = True
        await self.close()
        return confirmed

    async def close(self) -> None:
        """Close all sockets and connections. The kernel continues."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._requests is not None:
            self._requests.stop()
        self._ports.close()
        self._supervisor.close()
        if self._directory is not None:
            await in_thread(self._directory.remove)

    async def _listen_for_clients(self) -> None:
        """Open the missing sockets on this machine; Jupyter may have deleted their files."""
        if self._directory is not None:
            paths = self._directory.paths
            await self._ports.start_at({f"kernel-{name}": path for name, path in paths.items()})

    def _track_requests(self) -> None:
        """Track the running requests of the present kernel, which may have a new key."""
        if self._requests is not None:
            self._requests.stop()
        self._requests = RunningRequests(self.connection)
        self._requests.start()

    async def _connect(self, address: AgentAddress, patience: float = 0.0) -> None:
        """Connect to the supervisor and send ``hello``."""
        await self._supervisor.connect(address, patience)
        hello = await self._supervisor.request({"type": "hello", "take": self._take}, "hello")
        if self._take != "look" and not hello["owned"]:
            raise KernelLostError(_("The kernel of job {id} has an owner.").format(id=self.job.id))
        key = str(hello["connection"]["key"]).encode()
        if self.key and key != self.key:
            self._supervisor.close(at_once=True)
            raise KernelLostError(
                _("The kernel of job {id} was replaced by another one.").format(id=self.job.id)
            )
        self.key, self.scheme = key, str(hello["connection"]["signature_scheme"])
        self._run = int(hello["run"])
        self.code = hello["code"]
        self._ports.address = address
        self._take = "own" if self._take == "orphan" else self._take
        self.connected = True

    async def _keep_connected(self, address: AgentAddress | None) -> None:
        """Reconnect to the supervisor until the container is lost; then report the loss."""
        loop, reason = asyncio.get_running_loop(), ""
        pause, broken = FIRST_PAUSE, 0.0
        while not reason:
            if self.connected:
                await self._ping()
                self.connected, pause, broken = False, FIRST_PAUSE, loop.time()
            if reason := self.loss or await in_thread(lambda: loss_reason(self.job)):
                break
            with contextlib.suppress(SubmarineError, OSError, ValueError, KeyError):
                address = await in_thread(self.job.directory.address) or address
            if address is not None:
                try:
                    await self._connect(address)
                    continue
                except (TunnelError, TimeoutError, KernelLostError) as error:
                    log.debug("the kernel of %s cannot be reached: %s", self.job.id, error)
                    self._supervisor.close(at_once=True)
            await asyncio.sleep(pause)
            most = EARLY_PAUSE if loop.time() - broken < EARLY_SECONDS else LAST_PAUSE
            pause = min(pause * 1.5, most)
        # Before `loss` is set: the running requests must be final, and the sockets be closed.
        self.clients = self._ports.count("kernel-iopub")
        if self._requests is not None:
            self.clients -= 1  # It listens too.
            self._requests.stop()
        self._ports.close()
        self.loss = reason
        if self._report is not None:
            self._report(reason)

    async def _ping(self) -> None:
        """Ping until the connection to the supervisor has ended, or is silent."""
        loop = asyncio.get_running_loop()
        supervisor = self._supervisor
        while not supervisor.broken.is_set():
            supervisor.send({"type": "ping"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(supervisor.broken.wait(), PING)
            if loop.time() - supervisor.last_message > DEAD:
                break
        supervisor.close(at_once=True)

    def _on_message(self, message: Mapping[str, Any]) -> None:
        kind = str(message["type"])
        if kind == "exited" and int(message["run"]) == self._run:
            self.code = int(message["code"])
        elif kind == "refused":
            log.warning("the kernel of job %s has another owner now", self.job.id)
            self.loss = _("Another server has taken over the kernel.")
            self._supervisor.broken.set()


def loss_reason(job: Job) -> str:
    """Return why the container of a kernel is lost; empty if it is not known to be. Blocks.

    If the container was replaced, the job is cancelled: a coordinator restarts a task after the
    loss of its node or a preemption, but the variables of the kernel are lost.
    """
    try:
        view = job.view()
    except SubmarineError as error:
        log.debug("the status of job %s cannot be read: %s", job.id, error)
        return ""
    if view.record.state.ended:
        return _("The container of the kernel is gone. {view}").format(view=sentence(view))
    for task in view.record.tasks:
        if task.restarts:
            cancel_job(job, _("its kernel is lost"))
            return (
                _("The container of the kernel is gone. {detail}")
                .format(detail=task.detail)
                .strip()
            )
    return ""
