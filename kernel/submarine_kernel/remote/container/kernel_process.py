"""The process of the kernel in its container: start, signal, restart and end it.

The kernel listens on Unix sockets below the scratch directory, to which other users of the node
have no access, with a key that is generated in the container.
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
#: Seconds between SIGTERM and SIGKILL.
GRACE = 3.0
#: Seconds in which a signal to all processes of the container arrives at each of them.
SIGNAL_SECONDS = 0.1


class KernelProcess:
    """One kernel after another, all with the same sockets.

    Parameters
    ----------
    scratch
        A directory for this user only.
    sockets
        Directory of the sockets, with a short path.
    on_exit
        Called with the number of a run and its exit code when the kernel has ended by itself.
    """

    def __init__(self, scratch: str, sockets: str, on_exit: Callable[[int, int], None]) -> None:
        self._file = os.path.join(scratch, "kernel.json")
        self._on_exit = on_exit
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
        """The key that signs the kernel's messages."""
        return str(self._connection["key"])

    async def start(self, key: str = "") -> None:
        """Start a kernel if none runs; a running kernel with another key is replaced."""
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
            *("-m", kernel_module(), "-f", self._file),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            # The kernel ends with its parent.
            env=dict(os.environ, JPY_PARENT_PID=str(os.getpid())),
        )
        log(f"kernel {self.run} is started, process {self._process.pid}")
        asyncio.get_running_loop().create_task(self._wait(self._process, self.run))

    async def _wait(self, process: asyncio.subprocess.Process, run: int) -> None:
        """Report the end of a kernel."""
        code = await process.wait()
        if code < 0:
            # A signal to the whole container ends the kernel first. Then the owner must report the
            # loss of the container, not the death of the kernel.
            await asyncio.sleep(SIGNAL_SECONDS)
        if self._ending:
            return
        log(f"kernel {run} has ended with {code}")
        if run == self.run:
            self.code = code
            self._on_exit(run, code)

    def ignore_exit(self) -> None:
        """Do not report the end of the kernel any more."""
        self._ending = True

    async def end(self) -> None:
        """End the kernel by SIGTERM, then by SIGKILL."""
        if self._process is None:
            return
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), GRACE)
        except asyncio.TimeoutError:  # noqa: UP041 - another class before 3.11
            self.signal(signal.SIGKILL)
            await self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the kernel's process group."""
        if self._process is not None and self.code is None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def kernel_module() -> str:
    """Return the module that starts a kernel: Submarine's if it is installed, else ipykernel's.

    Raises
    ------
    SystemExit
        If ipykernel is not installed.
    """
    if importlib.util.find_spec("ipykernel") is None:
        raise SystemExit(
            f"submarine: ipykernel is not installed for {sys.executable}. Install it there, or "
            "choose another environment with --python-env."
        )
    installed = importlib.util.find_spec("submarine_kernel") is not None
    return "submarine_kernel" if installed else "ipykernel_launcher"


def log(message: str) -> None:
    """Write a line to the log of the job."""
    print("submarine: " + message, file=sys.stderr, flush=True)
