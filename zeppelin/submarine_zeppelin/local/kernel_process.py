"""Start and end an ipykernel process with private sockets, and create clients for it.

``container_process`` does the same for a kernel in a container.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.model import HEADLESS_ATTENDED, HEADLESS_VARIABLE
from submarine_runtime.translation import _

#: Timeouts of the start and the shutdown of a kernel in seconds.
START_TIMEOUT, SHUTDOWN_TIMEOUT = 120.0, 1.0
_PREFIX = "submarine-kernel-"
#: Timeout of a completion in seconds.
_COMPLETION_TIMEOUT = 2.0
#: Maximum number of messages that wait on a socket.
_MAX_MESSAGES = 20_000


class KernelDiedError(SubmarineError):
    """The process of the session has ended, and its variables are lost."""


class SessionProcess(ABC):
    """Process of a session, which may be restarted.

    Attributes
    ----------
    client
        Client of the running kernel.
    directory
        Directory of this machine that the session shares; None if there is none.
    """

    def __init__(self) -> None:
        self.client: Any = None
        self.directory: Path | None = None

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the process runs."""

    @property
    def reachable(self) -> bool:
        """Whether messages arrive now."""
        return True

    @abstractmethod
    def start(self, show: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        """Start the process and wait until it is ready.

        Parameters
        ----------
        show
            Called with what the start waits for.
        stopped
            Whether the start must end.
        """

    @abstractmethod
    def connect(self) -> Any:
        """Create a client with its own identity."""

    @abstractmethod
    def interrupt(self) -> None:
        """Send SIGINT to the program and its child processes; called from any thread."""

    def take_loss(self) -> KernelDiedError | None:
        """Return an error if the session was lost and no call has returned it before."""
        return None

    @abstractmethod
    def end(self) -> None:
        """End the process and its child processes."""


class KernelProcess(SessionProcess):
    """Kernel process on this machine. Only ``signal`` may be called from other threads.

    Parameters
    ----------
    python
        Python with ipykernel; empty: the Python of this process.
    """

    def __init__(self, python: str) -> None:
        super().__init__()
        self._python = python or sys.executable
        self.manager: Any = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        manager = self.manager
        return manager is not None and bool(manager.is_alive())

    def start(self, show: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        """Start the process and wait until it is ready.

        Raises
        ------
        UsageError
            If the Python does not exist or has no ipykernel.
        """
        self.end()
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
        self.client = self.connect()
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

    def connect(self) -> Any:
        """Create a client for the process."""
        return connect_client(self.manager.get_connection_info())

    def interrupt(self) -> None:
        """Send SIGINT to the process and its child processes."""
        self.signal(signal.SIGINT)

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


def complete(process: SessionProcess, code: str, cursor: int) -> Mapping[str, Any]:
    """Return completions over a separate connection; none if the kernel is slow."""
    if not process.alive:
        return {}
    client = process.connect()
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        reply = client.complete(code, cursor, reply=True, timeout=_COMPLETION_TIMEOUT)
        return dict(reply["content"])
    except (TimeoutError, queue.Empty):
        return {}
    finally:
        client.stop_channels()


def connect_client(connection: Any) -> Any:
    """Create a client with its own identity, so that it receives only its replies.

    Parameters
    ----------
    connection
        The content of a connection file.
    """
    # cost: memory, before the first %submarine.python paragraph.
    import zmq
    from jupyter_client.blocking.client import BlockingKernelClient

    context: Any = zmq.Context.instance()
    # The default of 1,000 messages loses output that is printed faster than it is shown.
    context.setsockopt(zmq.RCVHWM, _MAX_MESSAGES)
    client = BlockingKernelClient(context=context)
    client.load_connection_info(connection)
    return client


def remove_stale_directories() -> None:
    """Remove directories of processes that were killed. Their kernels have ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = path.name[len(_PREFIX) :].partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.getuid():
                    shutil.rmtree(path, ignore_errors=True)
