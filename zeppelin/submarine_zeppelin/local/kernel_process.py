"""The process of a note's Python session: started with private sockets, ended with all it began.

Knows nothing of executions and their messages (``kernel``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import ATTENDED, VARIABLE
from submarine_zeppelin.local.kernel_client import PREFIX, client_of, sweep

#: Seconds that a kernel may take to start, and to end when asked to.
START, END = 120.0, 1.0


class KernelProcess:
    """One process, which may be started again after its end; used by one thread, but ``signal``.

    Parameters
    ----------
    python
        Its interpreter, which has ipykernel; empty: our own.
    """

    def __init__(self, python: str) -> None:
        self._python = python or sys.executable
        self.manager: Any = None
        self.client: Any = None
        self.directory: Path | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        manager = self.manager
        return manager is not None and bool(manager.is_alive())

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises
        ------
        UsageError
            If that Python is not there or has no ipykernel.
        """
        from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
        from jupyter_client.manager import KernelManager

        python, argv = self._python, ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if shutil.which(python) is None:
            raise UsageError(
                f"There is no Python at {python[:200]} (zeppelin.python).",
                "Set the interpreter's setting zeppelin.python to one, or leave it empty.",
            )

        class OnlyThis(KernelSpecManager):
            """Knows one kernel: the interpreter that is set."""

            def get_kernel_spec(self, kernel_name: str) -> Any:
                """It, whatever it is called."""
                return KernelSpec(argv=[python, *argv], display_name="Python", language="python")

        # Short, because paths of sockets must be, and closed to other users.
        sweep()
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        (self.directory / "modules").mkdir()
        log = (self.directory / "kernel.log").open("wb")
        try:
            manager = KernelManager(
                kernel_spec_manager=OnlyThis(),
                connection_file=str(self.directory / "connection.json"),
                transport="ipc",
                ip=str(self.directory / "socket"),
            )
            # It cannot ask, and yet a person looks on.
            environment = {**os.environ, VARIABLE: ATTENDED}
            manager.start_kernel(stdout=log, stderr=log, env=environment)
        finally:
            log.close()
        self.manager = manager
        self.client = client_of(manager)
        self.client.start_channels(stdin=False, hb=False, control=False)
        self._await_ready()

    def _await_ready(self) -> None:
        try:
            self.client.wait_for_ready(timeout=START)
        except RuntimeError:
            why = self._last_words()
            self.end()
            raise UsageError(
                f"{self._python} does not start as a kernel: {why}",
                "Install ipykernel there, or leave the setting zeppelin.python empty.",
            ) from None

    def _last_words(self) -> str:
        """The end of what the process has printed before it could answer."""
        if self.directory is None:
            return "it said nothing."
        data = (self.directory / "kernel.log").read_bytes()[-2000:]
        lines = data.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing."

    def signal(self, number: int) -> None:
        """A signal for it and whatever it has started."""
        manager = self.manager
        provisioner = manager.provisioner if manager is not None else None
        pid = getattr(provisioner, "pid", None)
        if pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # It leads a group of its own, in which its children are.
                os.killpg(pid, number)

    def end(self) -> None:
        """End it and all that it has left running."""
        manager, client = self.manager, self.client
        if manager is not None:
            with contextlib.suppress(Exception):
                manager.request_shutdown()
            until = time.monotonic() + END
            while time.monotonic() < until and manager.is_alive():
                time.sleep(0.02)
            self.signal(signal.SIGKILL)
            with contextlib.suppress(Exception):
                manager.shutdown_kernel(now=True)
        if client is not None:
            client.stop_channels()
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.manager = self.client = self.directory = None
