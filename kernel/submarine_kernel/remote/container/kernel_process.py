"""The kernel as a process of the container: started, signalled, started again, ended.

It listens on Unix sockets below the scratch directory, which nobody else on the node can reach,
with a key that is made here. Does not speak to its owner (``keeper``).
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable
from typing import Any

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
SCHEME = "hmac-sha256"
#: Seconds that a kernel has to end after SIGTERM.
GRACE = 3.0
#: Seconds in which a signal to all processes of the container has reached all of them.
SETTLE = 0.1


class KernelProcess:
    """One kernel after the other, all with the same sockets.

    Parameters
    ----------
    scratch
        A directory for this user alone.
    sockets
        Where its sockets are; short, since a socket's name is.
    exited
        Called with the number of a run and its exit code when it has ended by itself.
    """

    def __init__(self, scratch: str, sockets: str, exited: Callable[[int, int], None]) -> None:
        self._file = os.path.join(scratch, "kernel.json")
        self._exited = exited
        self._process: asyncio.subprocess.Process | None = None
        self._ending = False
        self.run = 0
        self.code: int | None = None
        self._connection: dict[str, Any] = {
            "transport": "ipc",
            "ip": os.path.join(sockets, "k"),
            "key": secrets.token_hex(32),
            "signature_scheme": SCHEME,
        }
        for number, name in enumerate(CHANNELS, 1):
            self._connection[name + "_port"] = number

    @property
    def key(self) -> str:
        """What its messages are signed with."""
        return str(self._connection["key"])

    async def start(self, key: str = "") -> None:
        """Start a kernel; no matter if one runs, unless its clients have another key."""
        if key and key != self.key:
            self.signal(signal.SIGKILL)
            if self._process is not None:
                await self._process.wait()
            self._connection["key"], self._process = key, None
        if self._process is not None and self.code is None:
            return
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(self._connection, file)
        self.run, self.code = self.run + 1, None
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", module(), "-f", self._file),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            # The kernel ends when its parent is gone.
            env=dict(os.environ, JPY_PARENT_PID=str(os.getpid())),
        )
        say(f"kernel {self.run} is started, process {self._process.pid}")
        asyncio.get_running_loop().create_task(self._attend(self._process, self.run))

    async def _attend(self, process: asyncio.subprocess.Process, run: int) -> None:
        """Tell when this kernel has ended."""
        code = await process.wait()
        if code < 0:
            # A signal to the whole container reaches the kernel first: then this is no kernel's
            # death, and its owner is to hear of the container's.
            await asyncio.sleep(SETTLE)
        if self._ending:
            return
        say(f"kernel {run} has ended with {code}")
        if run == self.run:
            self.code = code
            self._exited(run, code)

    def is_over(self) -> None:
        """From now on its end is no news."""
        self._ending = True

    async def end(self) -> None:
        """End it, at last by force."""
        if self._process is None:
            return
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), GRACE)
        except asyncio.TimeoutError:  # noqa: UP041 - another class before 3.11
            self.signal(signal.SIGKILL)
            await self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it has started in its group."""
        if self._process is not None and self.code is None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


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
