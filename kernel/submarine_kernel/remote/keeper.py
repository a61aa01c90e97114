"""Keeps a kernel in the container of a job: starts it, signals it, starts it again, ends in time.

Runs as the program of a job: standard library only, Python >= 3.8. The kernel listens on Unix
sockets below the scratch directory, which nobody else on the node can reach, with a key that is
made here. Its owner, on the notebook's side, comes through the port of the job to the socket
``control`` and speaks JSON, an object a line:

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
for ``--idle`` seconds (or ``UNMET``, if none ever came) the keeper ends kernel and job.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import secrets
import signal
import sys
import time
from typing import Any

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
#: Seconds that a kernel has to end after SIGTERM.
GRACE = 3.0
#: Seconds in which a signal to all processes of the container has reached all of them.
SETTLE = 0.1
#: Seconds for an owner to come at all: who has given up waiting never does.
UNMET = 300.0
#: Seconds without a ping after which another may take an orphan.
OWNED = 15.0


class Keeper:
    """The kernel, its owner, and what becomes of both."""

    def __init__(self, idle: float) -> None:
        declared = os.environ["SUBMARINE_TUNNELS"]
        scratch = os.path.dirname(declared)
        os.makedirs(os.path.join(scratch, "sockets"), 0o700, exist_ok=True)
        # A socket's name is short, the path of a container's directory is not.
        self.sockets = os.path.relpath(os.path.join(scratch, "sockets"))
        self.file = os.path.join(scratch, "kernel.json")
        self.idle = idle
        self.heard = time.monotonic()
        self.met = False
        self.owner: asyncio.StreamWriter | None = None
        self.process: asyncio.subprocess.Process | None = None
        self.run = 0
        self.code: int | None = None
        self.over = asyncio.Event()
        self.connection: dict[str, Any] = {
            "transport": "ipc",
            "ip": os.path.join(self.sockets, "k"),
            "key": secrets.token_hex(32),
            "signature_scheme": "hmac-sha256",
        }
        for number, name in enumerate(CHANNELS, 1):
            self.connection[name + "_port"] = number
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
            loop.add_signal_handler(number, self.over.set)
        await self.start()
        server = await asyncio.start_unix_server(self.serve, os.path.join(self.sockets, "keeper"))
        lease = loop.create_task(self.lease())
        await self.over.wait()
        lease.cancel()
        server.close()
        await self.end()

    async def start(self, key: str = "") -> None:
        """Start a kernel; no matter if one runs, unless its clients have another key."""
        if key and key != self.connection["key"]:
            self.signal(signal.SIGKILL)
            if self.process is not None:
                await self.process.wait()
            self.connection["key"], self.process = key, None
        if self.process is not None and self.code is None:
            return
        descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(self.connection, file)
        self.run, self.code = self.run + 1, None
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", module(), "-f", self.file),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            # The kernel ends when its parent is gone.
            env=dict(os.environ, JPY_PARENT_PID=str(os.getpid())),
        )
        say(f"kernel {self.run} is started, process {self.process.pid}")
        asyncio.get_running_loop().create_task(self.attend(self.process, self.run))

    async def attend(self, process: asyncio.subprocess.Process, run: int) -> None:
        """Tell the owner when this kernel has ended."""
        code = await process.wait()
        if code < 0:
            # A signal to the whole container reaches the kernel first: then this is no kernel's
            # death, and its owner is to hear of the container's.
            await asyncio.sleep(SETTLE)
        if self.over.is_set():
            return
        say(f"kernel {run} has ended with {code}")
        if run == self.run:
            self.code = code
            self.tell(self.owner, type="exited", run=run, code=code)

    async def end(self) -> None:
        """End the kernel, at last by force."""
        if self.process is None:
            return
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), GRACE)
        except asyncio.TimeoutError:  # noqa: UP041 - another class before 3.11
            self.signal(signal.SIGKILL)
            await self.process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it has started in its group."""
        if self.process is not None and self.code is None:
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    async def lease(self) -> None:
        """End when nobody has been there for long."""
        while True:
            patience = self.idle if self.met else min(self.idle, UNMET)
            left = self.heard + patience - time.monotonic()
            if left <= 0:
                say(f"nobody was there for {patience:g} s: the kernel ends, and its job")
                self.over.set()
                return
            await asyncio.sleep(min(left, 10.0))

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
                self.signal(int(asked["number"]))
            elif kind == "start":
                await self.start(str(asked.get("key") or ""))
                self.tell(writer, type="started", run=self.run)
            elif kind == "leave":
                say("its owner has ended the kernel")
                self.tell(writer, type="bye")
                self.over.set()
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
        connection = {"key": self.connection["key"], "signature_scheme": "hmac-sha256"}
        self.tell(
            writer,
            type="hello",
            connection=connection,
            owned=owned,
            present=present,
            run=self.run,
            code=self.code,
        )

    @staticmethod
    def tell(writer: asyncio.StreamWriter | None, **words: Any) -> None:
        """Send one line, if there is anybody."""
        if writer is not None and not writer.is_closing():
            writer.write(json.dumps(words).encode() + b"\n")


def module() -> str:
    """The kernel of this environment: ours where it is installed, else ipykernel's own.

    Raises
    ------
    SystemExit
        If there is none; its sentence says what to do.
    """
    if importlib.util.find_spec("ipykernel") is None:
        raise SystemExit(
            f"submarine: ipykernel is not installed for {sys.executable}. Install it there, or "
            "choose another environment with --python-env."
        )
    ours = importlib.util.find_spec("submarine_kernel") is not None
    return "submarine_kernel" if ours else "ipykernel_launcher"


def say(words: str) -> None:
    """A line for the log of the job."""
    print("submarine: " + words, file=sys.stderr, flush=True)


async def _main(idle: float) -> None:
    module()
    await Keeper(idle).keep()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=float, required=True)
    asyncio.run(_main(parser.parse_args().idle))
