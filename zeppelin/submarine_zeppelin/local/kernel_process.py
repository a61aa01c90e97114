"""Start and end an ipykernel process with private sockets, and create clients for it."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import HEADLESS_ATTENDED, HEADLESS_VARIABLE
from submarine_runtime.translation import _

#: Timeouts of the start and the shutdown of a kernel in seconds.
START_TIMEOUT, SHUTDOWN_TIMEOUT = 120.0, 1.0
_PREFIX = "submarine-kernel-"
#: Timeout of a completion in seconds.
_COMPLETION_TIMEOUT = 2.0
#: Maximum number of messages that wait on a socket.
_MAX_MESSAGES = 20_000


class KernelProcess:
    """Kernel process that may be restarted. Only ``signal`` may be called from other threads.

    Parameters
    ----------
    python
        Python with ipykernel; empty: the Python of this process.
    """

    def __init__(self, python: str) -> None:
        self._python = python or sys.executable
        self.manager: Any = None
        self.client: Any = None
        self.directory: Path | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        manager = self.manager
        return manager is not None and bool(manager.is_alive())

    def start(self) -> None:
        """Start the process and wait until it is ready.

        Raises
        ------
        UsageError
            If the Python does not exist or has no ipykernel.
        """
        # cost: memory, before the first %submarine.python paragraph.
        from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
        from jupyter_client.manager import KernelManager

        python, argv = self._python, ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if shutil.which(python) is None:
            raise UsageError(
                _("There is no Python at {python} (zeppelin.python).").format(python=python[:200]),
                _("Correct the setting zeppelin.python of the interpreter, or leave it empty."),
            )

        class SingleKernelSpecManager(KernelSpecManager):
            """Provides the kernel spec of the configured Python."""

            def get_kernel_spec(self, kernel_name: str) -> Any:
                """Return the kernel spec for any name."""
                return KernelSpec(argv=[python, *argv], display_name="Python", language="python")

        # A short path, because socket paths are limited; without access for other users.
        remove_stale_directories()
        self.directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        (self.directory / "modules").mkdir()
        log = (self.directory / "kernel.log").open("wb")
        try:
            manager = KernelManager(
                kernel_spec_manager=SingleKernelSpecManager(),
                connection_file=str(self.directory / "connection.json"),
                transport="ipc",
                ip=str(self.directory / "socket"),
            )
            # The kernel has no input, but a user is present.
            environment = {**os.environ, HEADLESS_VARIABLE: HEADLESS_ATTENDED}
            manager.start_kernel(stdout=log, stderr=log, env=environment)
        finally:
            log.close()
        self.manager = manager
        self.client = connect_client(manager)
        self.client.start_channels(stdin=False, hb=False, control=False)
        self._await_ready()

    def _await_ready(self) -> None:
        try:
            self.client.wait_for_ready(timeout=START_TIMEOUT)
        except RuntimeError:
            reason = self._last_output()
            self.end()
            raise UsageError(
                _("{python} does not start as a kernel: {reason}").format(
                    python=self._python, reason=reason
                ),
                _("Install ipykernel in it, or leave the setting zeppelin.python empty."),
            ) from None

    def _last_output(self) -> str:
        """Return the last line that the process has printed."""
        if self.directory is None:
            return _("there is no output.")
        data = (self.directory / "kernel.log").read_bytes()[-2000:]
        lines = data.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else _("there is no output.")

    def signal(self, number: int) -> None:
        """Send a signal to the process and its child processes."""
        manager = self.manager
        provisioner = manager.provisioner if manager is not None else None
        pid = getattr(provisioner, "pid", None)
        if pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # The process leads a group that contains its children.
                os.killpg(pid, number)

    def end(self) -> None:
        """End the process and its child processes."""
        manager, client = self.manager, self.client
        if manager is not None:
            with contextlib.suppress(Exception):
                manager.request_shutdown()
            deadline = time.monotonic() + SHUTDOWN_TIMEOUT
            while time.monotonic() < deadline and manager.is_alive():
                time.sleep(0.02)
            self.signal(signal.SIGKILL)
            with contextlib.suppress(Exception):
                manager.shutdown_kernel(now=True)
        if client is not None:
            client.stop_channels()
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.manager = self.client = self.directory = None


def complete(manager: Any, code: str, cursor: int) -> Mapping[str, Any]:
    """Return completions over a separate connection; none if the kernel is slow."""
    if not manager.is_alive():
        return {}
    client = connect_client(manager)
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        reply = client.complete(code, cursor, reply=True, timeout=_COMPLETION_TIMEOUT)
        return dict(reply["content"])
    except (TimeoutError, queue.Empty):
        return {}
    finally:
        client.stop_channels()


def connect_client(manager: Any) -> Any:
    """Create a client with its own identity, so that it receives only its replies."""
    # cost: memory, before the first %submarine.python paragraph.
    import zmq
    from jupyter_client.blocking.client import BlockingKernelClient

    context: Any = zmq.Context.instance()
    # The default of 1,000 messages loses output that is printed faster than it is shown.
    context.setsockopt(zmq.RCVHWM, _MAX_MESSAGES)
    client = BlockingKernelClient(connection_file=manager.connection_file, context=context)
    client.load_connection_file()
    return client


def remove_stale_directories() -> None:
    """Remove directories of processes that were killed. Their kernels have ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = path.name[len(_PREFIX) :].partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.getuid():
                    shutil.rmtree(path, ignore_errors=True)
