"""The owner's end of a kernel in a container: local sockets, the kernel that runs there, its loss.

Everything here belongs to ``tunnel_loop``; only the attributes of ``RemoteKernel`` are read by
other threads. Does not submit (``placing``) and knows no Jupyter class (``provisioner``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import TunnelError, TunnelPorts
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote.container.kernel_process import CHANNELS
from submarine_kernel.remote.keeper_client import ANSWER, Conversation, KernelGoneError
from submarine_kernel.remote.loss import why_gone
from submarine_kernel.remote.running_requests import RunningRequests
from submarine_kernel.remote.sent_requests import SentRequests
from submarine_kernel.remote.socket_directory import SocketDirectory

if TYPE_CHECKING:
    from submarine_jobs.access import AgentAddress
    from submarine_jobs.client import Job

log = logging.getLogger(__name__)

#: Seconds between two signs of life; and without an answer until the connection counts as dead.
PING, DEAD = 3.0, 12.0
#: Seconds between two tries to reach the keeper again: from, to.
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
#: Longest pause in the first ``SOON`` seconds, in which the cluster reports most losses.
SOON_PAUSE, SOON = 0.25, 6.0


class RemoteKernel:
    """One kernel in the container of a job.

    Parameters
    ----------
    take
        ``own``, ``orphan`` or ``look``, see ``keeper``.

    Attributes
    ----------
    code
        Exit code of the kernel that ran last; None: it runs.
    gone
        Why there is no container any more; empty: there is one, as far as is known.
    connected
        Whether its keeper can be spoken to now.
    """

    def __init__(self, job: Job, take: str = "own") -> None:
        self.job = job
        self.code: int | None = None
        self.gone = ""
        self.connected = False
        self.key = b""
        self.scheme = ""
        self._take = take
        self._run = 0
        self._sent = SentRequests()
        names = [f"kernel-{name}" for name in CHANNELS]
        self._ports = TunnelPorts(names, {"kernel-shell": self._sent.tap})
        self._directory: SocketDirectory | None = None
        self._keeper = Conversation(job.id, self._hear)
        self._requests: RunningRequests | None = None
        self._tending: asyncio.Task[None] | None = None
        self._report: Callable[[str], None] | None = None

    @property
    def running(self) -> list[dict[str, Any]]:
        """Headers of the requests that the kernel works on, or worked on when it was lost."""
        return self._requests.all() if self._requests is not None else []

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """Headers of the requests behind those, which it has not begun with."""
        begun = {header.get("msg_id") for header in self.running}
        return [header for header in self._sent.all() if header.get("msg_id") not in begun]

    @property
    def connection(self) -> dict[str, Any]:
        """What a client of this machine needs: the content of a connection file."""
        where = self._directory.connection if self._directory is not None else {}
        return {"key": self.key, "signature_scheme": self.scheme, **where}

    async def open(self, address: AgentAddress, before: Mapping[str, Any] | None = None) -> None:
        """Take the kernel, and listen for its clients.

        Parameters
        ----------
        before
            What clients know already, as ``connection``: the same sockets are taken where they
            are free.

        Raises
        ------
        KernelGoneError
            If the keeper does not answer, or has an owner.
        """
        try:
            await self._meet(address, ANSWER)
            state_dir = self.job.session.profile.state_dir
            self._directory = await in_thread(lambda: SocketDirectory(state_dir, before))
            await self._listen_for_clients()
        except (TunnelError, TimeoutError) as error:
            raise KernelGoneError(
                f"The kernel of job {self.job.id} cannot be reached: {error}."
            ) from error
        except OSError as error:
            raise KernelGoneError(
                f"The sockets of the kernel of {self.job.id} cannot be made on this machine: "
                f"{error}."
            ) from error
        if self._take != "look":  # who only looks gives no sign of life
            self._tending = asyncio.get_running_loop().create_task(self._tend(address))
            self._listen()

    async def report_loss(self, report: Callable[[str], None]) -> None:
        """Call ``report`` with the reason as soon as the container is known to be gone.

        It is called in ``tunnel_loop``, when the sockets of this machine are free.
        """
        self._report = report
        if self.gone and (self._tending is None or self._tending.done()):
            report(self.gone)

    async def start(self, key: bytes = b"") -> None:
        """Start a kernel in the same container, once the last one has ended.

        Parameters
        ----------
        key
            Of clients that are there already: a kernel that has another is replaced.

        Raises
        ------
        KernelGoneError
            If the container is ``gone``, or if its keeper does not answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ANSWER
        self._sent.clear()
        while True:
            while not (self.connected or self.gone) and loop.time() < deadline:
                await asyncio.sleep(0.05)
            try:
                answer = await self._keeper.ask({"type": "start", "key": key.decode()}, "started")
                break
            except KernelGoneError:
                # A connection that has just ended may be that of a container that is lost.
                if self.gone or loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.05)
        self._run, self.code = int(answer["run"]), None
        self.key = key or self.key
        await self._listen_for_clients()
        self._listen()

    async def signal(self, number: int) -> None:
        """Send the kernel a signal; nothing where nobody hears."""
        self._keeper.say({"type": "signal", "number": number})

    async def leave(self) -> bool:
        """End the kernel and its job; whether the keeper has heard it."""
        heard = False
        with contextlib.suppress(KernelGoneError):
            await self._keeper.ask({"type": "leave"}, "bye", 3.0)
            heard = True
        await self.close()
        return heard

    async def close(self) -> None:
        """Let go: no socket, no connection. The kernel stays where it is."""
        if self._tending is not None:
            self._tending.cancel()
        if self._requests is not None:
            self._requests.stop()
        self._ports.close()
        self._keeper.close()
        if self._directory is not None:
            await in_thread(self._directory.remove)

    async def _listen_for_clients(self) -> None:
        """Open the sockets of this machine, or those whose files Jupyter has deleted."""
        if self._directory is not None:
            paths = self._directory.paths
            await self._ports.start_at({f"kernel-{name}": path for name, path in paths.items()})

    def _listen(self) -> None:
        """Hear what the kernel works on, which may have another key than the one before."""
        if self._requests is not None:
            self._requests.stop()
        self._requests = RunningRequests(self.connection)
        self._requests.start()

    async def _meet(self, address: AgentAddress, patience: float = 0.0) -> None:
        """Connect to the keeper and say who we are."""
        await self._keeper.connect(address, patience)
        hello = await self._keeper.ask({"type": "hello", "take": self._take}, "hello")
        if self._take != "look" and not hello["owned"]:
            raise KernelGoneError(f"The kernel of job {self.job.id} has an owner.")
        key = str(hello["connection"]["key"]).encode()
        if self.key and key != self.key:
            self._keeper.close(at_once=True)
            raise KernelGoneError(f"The kernel of job {self.job.id} is another one.")
        self.key, self.scheme = key, str(hello["connection"]["signature_scheme"])
        self._run = int(hello["run"])
        self.code = hello["code"]
        self._ports.address = address
        self._take = "own" if self._take == "orphan" else self._take
        self.connected = True

    async def _tend(self, address: AgentAddress | None) -> None:
        """Stay in touch as long as there is a container; then report its loss."""
        loop, words = asyncio.get_running_loop(), ""
        pause, broken = FIRST_PAUSE, 0.0
        while not words:
            if self.connected:
                await self._stay()
                self.connected, pause, broken = False, FIRST_PAUSE, loop.time()
            if words := self.gone or await in_thread(lambda: why_gone(self.job)):
                break
            with contextlib.suppress(SubmarineError, OSError, ValueError, KeyError):
                address = await in_thread(self.job.directory.address) or address
            if address is not None:
                try:
                    await self._meet(address)
                    continue
                except (TunnelError, TimeoutError, KernelGoneError) as error:
                    log.debug("the kernel of %s cannot be reached: %s", self.job.id, error)
                    self._keeper.close(at_once=True)
            await asyncio.sleep(pause)
            most = SOON_PAUSE if loop.time() - broken < SOON else LAST_PAUSE
            pause = min(pause * 1.5, most)
        # Before the loss is visible: what ran must be known, and the sockets be free.
        if self._requests is not None:
            self._requests.stop()
        self._ports.close()
        self.gone = words
        if self._report is not None:
            self._report(words)

    async def _stay(self) -> None:
        """Until the connection to the keeper has ended, or is silent."""
        loop = asyncio.get_running_loop()
        keeper = self._keeper
        while not keeper.broken.is_set():
            keeper.say({"type": "ping"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(keeper.broken.wait(), PING)
            if loop.time() - keeper.heard > DEAD:
                break
        keeper.close(at_once=True)

    def _hear(self, said: Mapping[str, Any]) -> None:
        kind = str(said["type"])
        if kind == "exited" and int(said["run"]) == self._run:
            self.code = int(said["code"])
        elif kind == "refused":
            log.warning("the kernel of job %s has another owner now", self.job.id)
            self.gone = "Another server has taken the kernel over."
            self._keeper.broken.set()
