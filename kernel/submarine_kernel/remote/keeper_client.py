"""The word with a kernel's keeper in its container: JSON lines through a tunnel, and answers.

Belongs to ``tunnel_loop``. What is said is ``container.keeper``; what it means is ``owner``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from submarine_jobs.access import AgentAddress, Tunnel, TunnelError, open_tunnel
from submarine_jobs.errors import SubmarineError

#: Seconds that the keeper may take to answer.
ANSWER = 15.0
FIRST_PAUSE, LAST_PAUSE = 0.03, 5.0
_MAX_LINE = 1 << 16


class KernelGoneError(SubmarineError):
    """The container of a kernel is not there any more, or never came to be."""


class Conversation:
    """One connection to the keeper after the other.

    Parameters
    ----------
    job_id
        For sentences.
    hear
        Called with all that the keeper says.

    Attributes
    ----------
    broken
        Set when the connection of now has ended.
    heard
        When the keeper last said something, by the loop's clock.
    """

    def __init__(self, job_id: str, hear: Callable[[Mapping[str, Any]], None]) -> None:
        self._job_id = job_id
        self._take_news = hear
        self._tunnel: Tunnel | None = None
        self._lines = bytearray()
        self._answers: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self.broken = asyncio.Event()
        self.heard = 0.0

    async def connect(self, address: AgentAddress, patience: float = 0.0) -> None:
        """Connect, anew where there was a connection.

        Parameters
        ----------
        patience
            Seconds for a keeper that does not listen yet.

        Raises
        ------
        TunnelError
            If it cannot be reached.
        """
        self._lines.clear()
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            # One for each try: a tunnel that was refused breaks as well.
            self.broken = asyncio.Event()
            try:
                self._tunnel = await open_tunnel(
                    address, "keeper", self._take_bytes, self.broken.set
                )
            except TunnelError as error:
                if error.status not in (404, 503) or loop.time() > deadline:
                    self.broken.set()  # Also where nothing was connected.
                    raise
            else:
                self.heard = loop.time()
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_PAUSE)

    def close(self, *, at_once: bool = False) -> None:
        """Let go of the connection."""
        transport = self._tunnel.transport if self._tunnel is not None else None
        if transport is not None:
            if at_once:
                transport.abort()
            else:
                transport.close()

    async def ask(
        self, words: Mapping[str, Any], answer: str, seconds: float = ANSWER
    ) -> Mapping[str, Any]:
        """Say something, and wait for what is answered by the type ``answer``.

        Raises
        ------
        KernelGoneError
            If there is no connection, if it ends, or if no answer comes.
        """
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[answer] = future
        if not self.say(words):
            raise KernelGoneError(f"The kernel of job {self._job_id} cannot be reached now.")
        broken = asyncio.ensure_future(self.broken.wait())
        either: set[asyncio.Future[Any]] = {future, broken}
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            if broken.done():
                raise KernelGoneError(
                    f"The connection to the keeper of the kernel of job {self._job_id} ended "
                    "before it answered."
                )
            raise KernelGoneError(
                f"The keeper of the kernel of job {self._job_id} has not answered for "
                f"{seconds:g} s."
            )
        finally:
            broken.cancel()
            self._answers.pop(answer, None)

    def say(self, words: Mapping[str, Any]) -> bool:
        """Say something; False: there is nobody."""
        transport = self._tunnel.transport if self._tunnel is not None else None
        if transport is None or transport.is_closing():
            return False
        transport.write(json.dumps(words).encode() + b"\n")
        return True

    def _take_bytes(self, data: bytes) -> None:
        self._lines += data
        *lines, rest = self._lines.split(b"\n")
        self._lines = rest
        if len(rest) > _MAX_LINE:
            self.broken.set()
            return
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                self._hear(json.loads(line))

    def _hear(self, said: Mapping[str, Any]) -> None:
        self.heard = asyncio.get_running_loop().time()
        self._take_news(said)
        waiting = self._answers.get(str(said["type"]))
        if waiting is not None and not waiting.done():
            waiting.set_result(said)
