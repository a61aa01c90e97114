"""Client of the supervisor in a kernel's container: JSON lines through a tunnel.

``container.supervisor`` documents the messages. All methods run in ``tunnel_loop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from submarine_jobs.access import AgentAddress, Tunnel, TunnelError, open_tunnel
from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _

#: Seconds to wait for the supervisor's answer.
ANSWER_SECONDS = 15.0
FIRST_PAUSE, LAST_PAUSE = 0.03, 5.0
_MAX_LINE = 1 << 16


class KernelLostError(SubmarineError):
    """The container of a kernel does not exist any more, or was never started."""


class SupervisorClient:
    """A connection to the supervisor, which can be opened again.

    Parameters
    ----------
    job_id
        For error messages.
    on_message
        Called with each message of the supervisor.

    Attributes
    ----------
    broken
        Set when the current connection has ended.
    last_message
        Time of the supervisor's last message, by the loop's clock.
    """

    def __init__(self, job_id: str, on_message: Callable[[Mapping[str, Any]], None]) -> None:
        self._job_id = job_id
        self._on_message = on_message
        self._tunnel: Tunnel | None = None
        self._lines = bytearray()
        self._answers: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self.broken = asyncio.Event()
        self.last_message = 0.0

    async def connect(self, address: AgentAddress, patience: float = 0.0) -> None:
        """Open a connection; it replaces an earlier one.

        Parameters
        ----------
        patience
            Seconds to wait until the supervisor listens.

        Raises
        ------
        TunnelError
            If the supervisor cannot be reached.
        """
        self._lines.clear()
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            # A new event for each attempt: a refused tunnel sets it too.
            self.broken = asyncio.Event()
            try:
                self._tunnel = await open_tunnel(
                    address, "supervisor", self._receive, self.broken.set
                )
            except TunnelError as error:
                if error.status not in (404, 503) or loop.time() > deadline:
                    self.broken.set()  # Not set by a connection that was never open.
                    raise
            else:
                self.last_message = loop.time()
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_PAUSE)

    def close(self, *, at_once: bool = False) -> None:
        """Close the connection; ``at_once`` discards data that is not sent yet."""
        transport = self._tunnel.transport if self._tunnel is not None else None
        if transport is not None:
            if at_once:
                transport.abort()
            else:
                transport.close()

    async def request(
        self, message: Mapping[str, Any], answer: str, seconds: float = ANSWER_SECONDS
    ) -> Mapping[str, Any]:
        """Send a message and return the answer, a message of the type ``answer``.

        Raises
        ------
        KernelLostError
            If there is no connection, if it ends, or if no answer arrives.
        """
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[answer] = future
        if not self.send(message):
            raise KernelLostError(
                _("The kernel of job {job_id} cannot be reached now.").format(job_id=self._job_id)
            )
        broken = asyncio.ensure_future(self.broken.wait())
        either: set[asyncio.Future[Any]] = {future, broken}
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            if broken.done():
                raise KernelLostError(
                    _(
                        "The connection to the supervisor of the kernel of job {job_id} ended "
                        "before it answered."
                    ).format(job_id=self._job_id)
                )
            raise KernelLostError(
                _(
                    "The supervisor of the kernel of job {job_id} has not answered for "
                    "{seconds:g} s."
                ).format(job_id=self._job_id, seconds=seconds)
            )
        finally:
            broken.cancel()
            self._answers.pop(answer, None)

    def send(self, message: Mapping[str, Any]) -> bool:
        """Send a message; return False if there is no connection."""
        transport = self._tunnel.transport if self._tunnel is not None else None
        if transport is None or transport.is_closing():
            return False
        transport.write(json.dumps(message).encode() + b"\n")
        return True

    def _receive(self, data: bytes) -> None:
        self._lines += data
        *lines, rest = self._lines.split(b"\n")
        self._lines = rest
        if len(rest) > _MAX_LINE:
            self.broken.set()
            return
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                self._handle(json.loads(line))

    def _handle(self, message: Mapping[str, Any]) -> None:
        self.last_message = asyncio.get_running_loop().time()
        self._on_message(message)
        waiting = self._answers.get(str(message["type"]))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
