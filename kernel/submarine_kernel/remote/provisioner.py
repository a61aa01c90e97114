"""``submarine-yarn``: the provisioner by which Jupyter starts a kernel in a container of a cluster.

What Jupyter asks of a process is done here on the kernel of a job; the work is ``getting`` (one in
a container) and ``owner`` (with it). A kernel that dies is started again in the same container; a
container that is lost is a dead kernel, and the user's next restart gets a new one.
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
from submarine_kernel.remote.acquisition import forget, get_kernel, take_over
from submarine_kernel.remote.keeper_client import KernelGoneError
from submarine_kernel.remote.loss_notice import LastWords
from submarine_kernel.remote.pending_starts import Start, waiting
from submarine_kernel.remote.remote_kernel import RemoteKernel
from submarine_kernel.remote.start_progress import Telling, for_a_dialog
from submarine_kernel.remote.submission import Asked, give_up, session_of

T = TypeVar("T")

#: Seconds that a shutdown may take longer than that of a process of this machine.
FARTHER = 5.0
#: The exit code of a kernel whose container is gone.
GONE = 1
#: Seconds that a poll of Jupyter's which waits for the report of a loss needs to see it.
POLLED = 0.05


class SubmarineYarnProvisioner(KernelProvisionerBase):
    """One kernel in a container; its configuration is in ``kernel.json``."""

    run = Dict(
        help="Options of `submarine run` for the container: memory, vcores, gpu, queue, python_env."
    ).tag(config=True)
    idle_timeout = Unicode(
        "1h", help="How long the container stays when its notebook server has vanished."
    ).tag(config=True)
    start_timeout = Unicode("30m", help="How long to wait for the container.").tag(config=True)

    _remote: RemoteKernel | None = None
    _session: Session | None = None
    _asked: Asked | None = None
    _has_process = False
    _telling: Future[None] | None = None
    _restart_limit: int | None = None
    _last_words: LastWords | None = None
    _polling: asyncio.Future[None] | None = None

    @property
    def has_process(self) -> bool:
        """Whether a kernel was started and not waited for."""
        return self._has_process

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Find out what is wanted; the command of the kernelspec is not used."""
        kwargs.pop("extra_arguments", None)
        kwargs = await super().pre_launch(cmd=list(self.kernel_spec.argv), **kwargs)
        variables = kwargs["env"]
        own = {key: variables.get(key, "") for key in self.kernel_spec.env}
        notebook = str(variables.get("JPY_SESSION_NAME") or "")
        if notebook:
            own["JPY_SESSION_NAME"] = notebook
        name = getattr(self.parent, "kernel_name", "") or self.kernel_spec.display_name
        with self._failing():
            self._asked = Asked(
                name,
                dict(self.run),
                parse_duration(self.idle_timeout),
                parse_duration(self.start_timeout),
                own,
                notebook,
            )
        return kwargs

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Around what may fail in a start."""
        try:
            yield
        except BaseException as error:
            # jupyter_client keeps a start that failed among those that go on, for ever, and
            # jupyter-server does not stop while it has one.
            if going_on := self._pending():
                going_on.pop(self.kernel_id, None)
            raise for_a_dialog(error)  # noqa: B904 - it is mostly the same

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start a kernel: in the container that there is, else in a new one."""
        remote = self._remote
        if remote is not None and not remote.gone:
            try:
                await _in_tunnels(remote.start())
                self._has_process = True
                return self.connection_info
            except KernelGoneError as error:
                await self._check_restart(remote)
                self.log.warning("%s A new container is asked for.", error)
        if self._last_words is not None:  # it listens on the sockets that the next kernel gets
            await in_thread(self._last_words.end)
            self._last_words = None
        await self._let_go()
        with self._failing():
            remote = await self._place()
        self._mind_restarts(on=True)
        await self._own(remote)
        return self.connection_info

    async def _own(self, remote: RemoteKernel) -> None:
        """Take a kernel, and report the loss of its container as soon as it is known."""
        self._remote = remote
        self._has_process, self._telling = True, None
        self.connection_info = _typed(remote.connection)
        loop = asyncio.get_running_loop()
        await _in_tunnels(remote.report_loss(lambda words: self._tell_loss(remote, words, loop)))

    async def _place(self) -> RemoteKernel:
        """A kernel that nobody owns any more, of the same notebook, or a new job's."""
        if self._asked is None:
            raise RuntimeError("pre_launch was not called")
        asked = self._asked
        if self._session is None:
            self._session = await in_thread(lambda: session_of(asked))
        session, before = self._session, dict(self.connection_info)
        start = Start(asked.name, asked.notebook)
        telling = Telling(start, self.log.info, terminal=self._pending() is None)
        with waiting(start):
            try:
                return await _in_tunnels(get_kernel(session, asked, before, telling))
            finally:
                telling.end()

    def _pending(self) -> dict[str, Any] | None:
        """The starts that a server of kernels knows of; None: whoever started this has no more."""
        going_on = getattr(getattr(self.parent, "parent", None), "_pending_kernels", None)
        return going_on if isinstance(going_on, dict) else None

    async def poll(self) -> int | None:
        """None while the kernel runs, as far as is known."""
        if self._remote is None:
            return 0
        if self._remote.gone and self._telling is not None:
            # Jupyter lets go of cells and connections once it knows: the clients come first.
            await asyncio.shield(asyncio.wrap_future(self._telling))
            return GONE
        # What cannot be reached now may run on: only its job can say that it does not.
        return self._remote.code if self._remote.connected else None

    def _tell_loss(
        self, remote: RemoteKernel, reason: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Tell the clients and then Jupyter that the kernel is dead; in the loop of the tunnels.

        Nothing gets a new container until the user restarts the kernel.
        """
        if remote is not self._remote:
            return
        sentence = f"{reason} Restart the kernel to get a new container."
        self.log.error("%s (job %s)", sentence, remote.job.id)
        self._mind_restarts(on=False)
        words = LastWords(sentence, self.connection_info, remote.running, remote.waiting)
        self._last_words = words
        telling = asyncio.run_coroutine_threadsafe(in_thread(words.say), tunnel_loop())
        self._telling = telling

        def told(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # that loop has ended, and its server
                loop.call_soon_threadsafe(loop.call_later, POLLED, self._poll_now, remote)

        telling.add_done_callback(told)

    def _poll_now(self, remote: RemoteKernel) -> None:
        """Have Jupyter's restarter poll at once: its own poll comes every 3 s.

        Only one that polls in this loop, and has not stopped since it knows already.
        """
        restarter: Any = getattr(self.parent, "_restarter", None)
        if remote is not self._remote or getattr(restarter, "_pcallback", None) is None:
            return
        if inspect.iscoroutinefunction(restarter.poll):
            restarter.stop()
            self._polling = asyncio.ensure_future(restarter.poll())

    async def _check_restart(self, remote: RemoteKernel) -> None:
        """End a restart if the container was lost meanwhile.

        Jupyter restarts a kernel that has ended by itself, and a kernel ends a moment before its
        container does. Only a restart by the user gets a new container.

        Raises
        ------
        KernelGoneError
            If the container was lost.
        """
        if not remote.gone:
            return
        if self._telling is not None:
            await asyncio.shield(asyncio.wrap_future(self._telling))
        # The restart has stopped the polls, by which Jupyter would learn that the kernel is dead.
        tell = getattr(getattr(self.parent, "_restarter", None), "_fire_callbacks", None)
        if tell is not None:
            tell("dead")
        with self._failing():
            raise KernelGoneError(f"{remote.gone} Restart the kernel to get a new container.")

    def _mind_restarts(self, *, on: bool) -> None:
        """Have a dead kernel restarted by Jupyter, or not."""
        restarter = getattr(self.parent, "_restarter", None)
        if restarter is None:
            return
        if on and self._restart_limit is not None:
            restarter.restart_limit, self._restart_limit = self._restart_limit, None
        elif not on and self._restart_limit is None:
            self._restart_limit, restarter.restart_limit = restarter.restart_limit, 0

    async def wait(self) -> int | None:
        """Until the kernel has ended."""
        while (code := await self.poll()) is None:
            await asyncio.sleep(0.02)
        self._has_process = False
        return code

    async def send_signal(self, signum: int) -> None:
        """To the kernel's process group."""
        if self._remote is not None and self._remote.code is None and not self._remote.gone:
            await _in_tunnels(self._remote.signal(signum))

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL."""
        await self.send_signal(9)

    async def terminate(self, restart: bool = False) -> None:
        """SIGTERM."""
        await self.send_signal(15)

    async def cleanup(self, restart: bool = False) -> None:
        """End the job, unless a kernel is to be started in it again."""
        if not restart:
            remote, self._remote, self._has_process = self._remote, None, False
            if remote is not None and not remote.gone:
                if not await _in_tunnels(remote.leave()):
                    await in_thread(lambda: give_up(remote.job, "its notebook was shut down"))
            elif remote is not None:
                await _in_tunnels(remote.close())

    async def _let_go(self) -> None:
        """Of what is left of a kernel whose container is gone, or cannot be reached any more."""
        remote, self._remote = self._remote, None
        if remote is None:
            return
        await _in_tunnels(remote.close())
        if not remote.gone:
            forget(remote.job, "its kernel did not answer")

    async def get_provisioner_info(self) -> dict[str, Any]:
        """What another process needs to own this kernel; holds the key, as Jupyter's own part."""
        info: dict[str, Any] = await super().get_provisioner_info()
        connection = dict(info["connection_info"])
        if isinstance(connection.get("key"), bytes):
            connection["key"] = connection["key"].decode()  # JSON knows no bytes
        info["connection_info"] = connection
        if self._remote is not None and self._asked is not None:
            info["job_id"] = self._remote.job.id
            info["asked"] = json.loads(json.dumps(self._asked.__dict__))
        return info

    async def load_provisioner_info(self, provisioner_info: dict[str, Any]) -> None:
        """Take the kernel over, on the same sockets of this machine where they are free."""
        await super().load_provisioner_info(provisioner_info)
        asked = Asked(**provisioner_info["asked"])
        session = await in_thread(lambda: session_of(asked))
        job = await in_thread(lambda: session.job(provisioner_info["job_id"]))
        self._asked, self._session = asked, session
        await self._own(await _in_tunnels(take_over(job, dict(self.connection_info))))

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """A little longer than for a process of this machine."""
        return recommended + FARTHER


def _typed(connection: dict[str, Any]) -> KernelConnectionInfo:
    return cast(KernelConnectionInfo, connection)


async def _in_tunnels(work: Coroutine[Any, Any, T]) -> T:
    """Run in the loop of the tunnels, and wait for it in this one."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, tunnel_loop()))
