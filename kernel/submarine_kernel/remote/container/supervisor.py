"""Program of a kernel's job: start a kernel in the container and supervise it for its owner.

The owner, on the notebook's side, connects through the port of the job to the socket
``supervisor``. Each message is a JSON object on one line:

=====================================  ========================================================
``{"type": "hello", "take": WORD}``    the first message; ``own``: become the owner;
                                       ``orphan``: become the owner if there is none; ``look``:
                                       do not become the owner. The answer is ``hello`` with
                                       ``connection``, ``owned``, ``run``, ``code``
``{"type": "ping"}``                   heartbeat of the owner; the answer is ``pong``
``{"type": "signal", "number": N}``    send a signal to the kernel's process group
``{"type": "start", "key": KEY}``      start a kernel if none with this key runs; the answer is
                                       ``started``. ``key`` is optional
``{"type": "leave"}``                  end the kernel and the job; the answer is ``bye``
=====================================  ========================================================

``{"type": "exited", "run": N, "code": N}`` is sent without a request. After ``--idle`` seconds
without an owner the supervisor ends the kernel and the job. An owner with an open connection
counts as lost after at least ``OWNER_TIMEOUT`` seconds without a message. The limit for the first
owner is between ``MIN_FIRST_OWNER`` and ``MAX_FIRST_OWNER`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import time
from typing import Any

from .kernel_process import CHANNELS, SCHEME, KernelProcess, kernel_module, log

#: Seconds to wait for the first owner, at least and at most. A cancelled start has none.
MIN_FIRST_OWNER, MAX_FIRST_OWNER = 60.0, 300.0
#: Seconds without a ping after which another owner may take the kernel as an orphan.
OWNER_TIMEOUT = 15.0
#: Longest pause between two checks for an owner, in seconds.
CHECK_SECONDS = 1.0


def main() -> None:
    """Run until the kernel is not needed any more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=float, required=True)
    idle = parser.parse_args().idle
    kernel_module()  # Exits if ipykernel is missing.
    asyncio.run(_run(idle))


async def _run(idle: float) -> None:
    # Created inside the loop: before Python 3.10 an event is bound to the present loop.
    await KernelSupervisor(idle).run()


class KernelSupervisor:
    """A kernel, the server for its owner, and the time limit without an owner."""

    def __init__(self, idle: float) -> None:
        tunnels_file = os.environ["SUBMARINE_TUNNELS"]
        scratch = os.path.dirname(tunnels_file)
        os.makedirs(os.path.join(scratch, "sockets"), 0o700, exist_ok=True)
        # The absolute path of a container's directory is too long for a socket.
        self.sockets = os.path.relpath(os.path.join(scratch, "sockets"))
        self.idle = idle
        self.last_message = time.monotonic()
        self.had_owner = False
        self.owner: asyncio.StreamWriter | None = None
        self.done = asyncio.Event()
        self.kernel = KernelProcess(scratch, self.sockets, self.on_exit)
        tunnels = {
            f"kernel-{name}": {"unix": f"sockets/k-{number}"}
            for number, name in enumerate(CHANNELS, 1)
        }
        tunnels["supervisor"] = {"unix": "sockets/supervisor"}
        with open(tunnels_file + ".part", "w") as file:
            json.dump(tunnels, file)
        os.replace(tunnels_file + ".part", tunnels_file)

    async def run(self) -> None:
        """Run until the owner ends the kernel, or there is no owner."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)
        await self.kernel.start()
        server = await asyncio.start_unix_server(
            self.serve, os.path.join(self.sockets, "supervisor")
        )
        lease = loop.create_task(self.check_owner())
        await self.done.wait()
        lease.cancel()
        server.close()
        await self.kernel.end()

    def leave(self) -> None:
        """End the kernel and the job."""
        self.kernel.ignore_exit()
        self.done.set()

    def on_exit(self, run: int, code: int) -> None:
        """Report to the owner that a kernel has ended."""
        self.send(self.owner, type="exited", run=run, code=code)

    def time_limit(self) -> float:
        """Return the seconds without a message after which there is no owner."""
        if not self.had_owner:
            return min(max(self.idle, MIN_FIRST_OWNER), MAX_FIRST_OWNER)
        # The owner sends a ping every few seconds: a shorter limit would end the kernel in between.
        return self.idle if self.owner is None else max(self.idle, OWNER_TIMEOUT)

    async def check_owner(self) -> None:
        """End the kernel when the time without an owner is over."""
        while True:
            limit = self.time_limit()
            left = self.last_message + limit - time.monotonic()
            if left <= 0:
                log(f"no owner for {limit:g} s: the kernel and its job end")
                self.leave()
                return
            await asyncio.sleep(min(left, CHECK_SECONDS))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            async for line in reader:
                await self.handle(json.loads(line), writer)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # The connection is lost, or a message is invalid.
        finally:
            if self.owner is writer:
                self.owner = None
            writer.close()

    async def handle(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Handle one message; all but ``hello`` are accepted from the owner only."""
        kind = message["type"]
        if kind == "hello":
            self.greet(str(message.get("take")), writer)
        elif writer is not self.owner:
            self.send(writer, type="refused")
        else:
            self.last_message = time.monotonic()
            if kind == "ping":
                self.send(writer, type="pong")
            elif kind == "signal":
                self.kernel.signal(int(message["number"]))
            elif kind == "start":
                await self.kernel.start(str(message.get("key") or ""))
                self.send(writer, type="started", run=self.kernel.run)
            elif kind == "leave":
                log("its owner has ended the kernel")
                self.send(writer, type="bye")
                self.leave()
        await writer.drain()

    def greet(self, take: str, writer: asyncio.StreamWriter) -> None:
        """Answer ``hello``, and change the owner if requested."""
        present = self.owner is not None and time.monotonic() - self.last_message < OWNER_TIMEOUT
        owned = take == "own" or (take == "orphan" and not present)
        if owned:
            before, self.owner, self.last_message = self.owner, writer, time.monotonic()
            self.had_owner = True
            if before is not None and before is not writer:
                self.send(before, type="refused")
                before.close()
        self.send(
            writer,
            type="hello",
            connection={"key": self.kernel.key, "signature_scheme": SCHEME},
            owned=owned,
            present=present,
            run=self.kernel.run,
            code=self.kernel.code,
        )

    @staticmethod
    def send(writer: asyncio.StreamWriter | None, **message: Any) -> None:
        """Send one message, if the connection is open."""
        if writer is not None and not writer.is_closing():
            writer.write(json.dumps(message).encode() + b"\n")
