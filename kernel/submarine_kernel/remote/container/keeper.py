"""Keeps a kernel in the container of a job for its owner, and ends in time.

The owner, on the notebook's side, comes through the port of the job to the socket ``keeper`` and
speaks JSON, an object a line:

=====================================  ========================================================
``{"type": "hello", "take": WORD}``    the first line; ``own``: be the owner from now on;
                                       ``orphan``: only if there is no owner; ``look``: only look.
                                       Answered by ``hello`` with ``connection``, ``owned``,
                                       ``run``, ``code``
``{"type": "ping"}``                   the owner is there; answered by ``pong``
``{"type": "signal", "number": N}``    to the kernel's process group
``{"type": "start", "key": KEY}``      start a kernel where none runs, or none with this key;
                                       answered by ``started``. ``key`` may be left out
``{"type": "leave"}``                  end the kernel and the job; answered by ``bye``
=====================================  ========================================================

``{"type": "exited", "run": N, "code": N}`` comes without being asked. Without a sign of an owner
for ``--idle`` seconds the keeper ends kernel and job; an owner whose connection is open counts as
silent only after ``OWNED``, and one who has never come has from ``FIRST`` to ``UNMET`` seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import Any

from .kernel_process import CHANNELS, SCHEME, KernelProcess, say

#: Seconds for an owner to come at all, at least and at most: who has given up waiting never does.
FIRST, UNMET = 60.0, 300.0
#: Seconds without a ping after which another may take an orphan.
OWNED = 15.0
#: Seconds between two looks whether there is one, at most.
LOOK = 1.0


class Keeper:
    """The kernel, its owner, and what becomes of both."""

    def __init__(self, idle: float) -> None:
        declared = os.environ["SUBMARINE_TUNNELS"]
        scratch = os.path.dirname(declared)
        os.makedirs(os.path.join(scratch, "sockets"), 0o700, exist_ok=True)
        # A socket's name is short, the path of a container's directory is not.
        self.sockets = os.path.relpath(os.path.join(scratch, "sockets"))
        self.idle = idle
        self.heard = time.monotonic()
        self.met = False
        self.owner: asyncio.StreamWriter | None = None
        self.over = asyncio.Event()
        self.kernel = KernelProcess(scratch, self.sockets, self.exited)
        tunnels = {
            f"kernel-{name}": {"unix": f"sockets/k-{number}"}
            for number, name in enumerate(CHANNELS, 1)
        }
        tunnels["keeper"] = {"unix": "sockets/keeper"}
        with open(declared + ".part", "w") as file:
            json.dump(tunnels, file)
        os.replace(declared + ".part", declared)

    async def keep(self) -> None:
        """Until the owner wants no more, or there is none."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)
        await self.kernel.start()
        server = await asyncio.start_unix_server(self.serve, os.path.join(self.sockets, "keeper"))
        lease = loop.create_task(self.lease())
        await self.over.wait()
        lease.cancel()
        server.close()
        await self.kernel.end()

    def leave(self) -> None:
        """From now on everything ends."""
        self.kernel.is_over()
        self.over.set()

    def exited(self, run: int, code: int) -> None:
        """Tell the owner that a kernel has ended."""
        self.tell(self.owner, type="exited", run=run, code=code)

    def patience(self) -> float:
        """Seconds without a sign of an owner after which there is none."""
        if not self.met:
            return min(max(self.idle, FIRST), UNMET)
        # Its signs come some seconds apart, so a shorter time would end it in between.
        return self.idle if self.owner is None else max(self.idle, OWNED)

    async def lease(self) -> None:
        """End when nobody has been there for long."""
        while True:
            patience = self.patience()
            left = self.heard + patience - time.monotonic()
            if left <= 0:
                say(f"nobody was there for {patience:g} s: the kernel ends, and its job")
                self.leave()
                return
            await asyncio.sleep(min(left, LOOK))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One who has come to the socket."""
        try:
            async for line in reader:
                await self.answer(json.loads(line), writer)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # it went away, or speaks nonsense
        finally:
            if self.owner is writer:
                self.owner = None
            writer.close()

    async def answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Do what one line asks; only the owner's does anything."""
        kind = asked["type"]
        if kind == "hello":
            self.greet(str(asked.get("take")), writer)
        elif writer is not self.owner:
            self.tell(writer, type="refused")
        else:
            self.heard = time.monotonic()
            if kind == "ping":
                self.tell(writer, type="pong")
            elif kind == "signal":
                self.kernel.signal(int(asked["number"]))
            elif kind == "start":
                await self.kernel.start(str(asked.get("key") or ""))
                self.tell(writer, type="started", run=self.kernel.run)
            elif kind == "leave":
                say("its owner has ended the kernel")
                self.tell(writer, type="bye")
                self.leave()
        await writer.drain()

    def greet(self, take: str, writer: asyncio.StreamWriter) -> None:
        """Say how things are, and who owns the kernel from now on."""
        present = self.owner is not None and time.monotonic() - self.heard < OWNED
        owned = take == "own" or (take == "orphan" and not present)
        if owned:
            before, self.owner, self.heard = self.owner, writer, time.monotonic()
            self.met = True
            if before is not None and before is not writer:
                self.tell(before, type="refused")
                before.close()
        self.tell(
            writer,
            type="hello",
            connection={"key": self.kernel.key, "signature_scheme": SCHEME},
            owned=owned,
            present=present,
            run=self.kernel.run,
            code=self.kernel.code,
        )

    @staticmethod
    def tell(writer: asyncio.StreamWriter | None, **words: Any) -> None:
        """Send one line, if there is anybody."""
        if writer is not None and not writer.is_closing():
            writer.write(json.dumps(words).encode() + b"\n")
