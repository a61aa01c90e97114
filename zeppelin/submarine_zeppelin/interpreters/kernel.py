"""One Python session of a note: an ipykernel process of its own, run to the end of each execution.

Interrupt, completion and rich output are ipykernel's. The process is started with the first
execution, listens on private sockets only, and is gone with its owner, however that ends. Does not
know paragraphs; what the messages mean is ``python``'s matter.
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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_zeppelin.interpreters.kernel_client import PREFIX, client_of, complete, sweep
from submarine_zeppelin.interpreters.worker import Worker

Hear = Callable[[str, Mapping[str, Any]], None]
#: Seconds that a kernel may take to start, and to end when asked to.
START, END = 120.0, 1.0
#: Seconds between two looks for a message, a wish to stop and a death.
_LOOK = 0.1
#: Seconds of silence after the answer: then the word that all is over was lost in a flood.
_LOST = 2.0


class KernelDiedError(SubmarineError):
    """The session's process has ended, so its variables are gone."""


class Kernel:
    """One Python process.

    Parameters
    ----------
    python
        Its interpreter, which has ipykernel; empty: our own.
    rows
        Rows that a table shows.
    """

    def __init__(self, python: str, rows: int) -> None:
        self._python = python or sys.executable
        self._rows = rows
        self._manager: Any = None
        self._client: Any = None
        self._directory: Path | None = None
        self._closed = False
        self._worker = Worker("submarine-kernel")

    @property
    def modules(self) -> Path | None:
        """Directory of modules that the session can import; None before the start."""
        return self._directory / "modules" if self._directory is not None else None

    def start(self) -> bool:
        """Start the process unless it runs; whether it was started now.

        Raises
        ------
        UsageError
            If that Python is not there or has no ipykernel.
        """
        return self._worker.do(self._start)

    def run(
        self, code: str, hear: Hear, stopped: Callable[[], bool], *, silent: bool = False
    ) -> Mapping[str, Any]:
        """Execute ``code``; ``hear`` gets type and content of each message about it.

        Returns
        -------
        Mapping
            Content of the reply: ``status``, ``execution_count`` and, of an error, its parts.

        Raises
        ------
        KernelDiedError
            If the process ends meanwhile.
        """
        return self._worker.do(lambda: self._run(code, hear, stopped, silent=silent))

    def _start(self) -> bool:
        if self._closed:
            raise KernelDiedError("The session has ended.", "Run the paragraph again.")
        if self._manager is not None and self._manager.is_alive():
            return False
        self._end()
        self._launch()
        return True

    def _run(
        self, code: str, hear: Hear, stopped: Callable[[], bool], *, silent: bool
    ) -> Mapping[str, Any]:
        client = self._client
        message_id = client.execute(
            code, silent=silent, store_history=not silent, allow_stdin=False, stop_on_error=False
        )
        begun, interrupted, idle = silent, False, False
        reply: Mapping[str, Any] | None = None
        heard_at = time.monotonic()
        while not idle and (reply is None or time.monotonic() - heard_at < _LOST):
            if stopped() and begun and not interrupted:
                interrupted = True
                self.interrupt()
            message = self._next(client.get_iopub_msg)
            if message is None:
                hear("tick", {})
                if reply is None and (reply := self._reply(message_id)) is not None:
                    heard_at = time.monotonic()
                continue
            heard_at = time.monotonic()
            if message["parent_header"].get("msg_id") == message_id:
                kind, content = message["msg_type"], message["content"]
                begun = begun or kind == "execute_input"
                idle = kind == "status" and content["execution_state"] == "idle"
                hear(kind, content)
        while reply is None:
            reply = self._reply(message_id)
        return reply

    def _reply(self, message_id: str) -> Mapping[str, Any] | None:
        """The answer to an execution, if it is there."""
        found = self._next(self._client.get_shell_msg)
        if found is None or found["parent_header"].get("msg_id") != message_id:
            return None
        content = found["content"]
        return content if isinstance(content, dict) else {}

    def complete(self, code: str, cursor: int) -> Mapping[str, Any]:
        """The kernel's proposals; none while it is busy for long."""
        manager = self._manager
        if manager is None:
            return {}
        worker = Worker("submarine-completion")
        try:
            return worker.do(lambda: complete(manager, code, cursor))
        finally:
            worker.end()

    def interrupt(self) -> None:
        """What Ctrl-C does in a terminal: to the program and whatever it has started."""
        self._signal(signal.SIGINT)

    def close(self) -> None:
        """End the process and all that it has left running; more than once is no error."""
        self._closed = True
        self._worker.do(self._end)
        self._worker.end()

    def _next(self, get: Callable[..., Any]) -> Any:
        try:
            return get(timeout=_LOOK)
        except queue.Empty:
            pass
        manager = self._manager
        if self._closed or manager is None or not manager.is_alive():
            raise KernelDiedError(
                "The Python process of this note has ended, and its variables are gone.",
                "Run the paragraphs again; the next one starts a new process.",
            )
        return None

    def _launch(self) -> None:
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
        self._directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        (self._directory / "modules").mkdir()
        log = (self._directory / "kernel.log").open("wb")
        try:
            manager = KernelManager(
                kernel_spec_manager=OnlyThis(),
                connection_file=str(self._directory / "connection.json"),
                transport="ipc",
                ip=str(self._directory / "socket"),
            )
            manager.start_kernel(stdout=log, stderr=log)
        finally:
            log.close()
        self._manager = manager
        self._client = client_of(manager)
        self._client.start_channels(stdin=False, hb=False, control=False)
        self._await_ready()
        self._prepare()

    def _await_ready(self) -> None:
        try:
            self._client.wait_for_ready(timeout=START)
        except RuntimeError:
            why = self._last_words()
            self._end()
            raise UsageError(
                f"{self._python} does not start as a kernel: {why}",
                "Install ipykernel there, or leave the setting zeppelin.python empty.",
            ) from None

    def _last_words(self) -> str:
        """The end of what the process has printed before it could answer."""
        if self._directory is None:
            return "it said nothing."
        data = (self._directory / "kernel.log").read_bytes()[-2000:]
        lines = data.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing."

    def _prepare(self) -> None:
        text = Path(__file__).with_name("in_kernel.py").read_text("utf-8")
        code = (
            f"exec(compile({text!r}, '<submarine>', 'exec'), {{'ROWS': {self._rows}}})\n"
            f"import sys; sys.path.insert(1, {str(self.modules)!r}); del sys"
        )
        self._run(code, lambda kind, content: None, lambda: False, silent=True)

    def _signal(self, number: int) -> None:
        manager = self._manager
        provisioner = manager.provisioner if manager is not None else None
        pid = getattr(provisioner, "pid", None)
        if pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # It leads a group of its own, in which its children are.
                os.killpg(pid, number)

    def _end(self) -> None:
        manager, client = self._manager, self._client
        if manager is not None:
            with contextlib.suppress(Exception):
                manager.request_shutdown()
            until = time.monotonic() + END
            while time.monotonic() < until and manager.is_alive():
                time.sleep(0.02)
            self._signal(signal.SIGKILL)
            with contextlib.suppress(Exception):
                manager.shutdown_kernel(now=True)
        if client is not None:
            client.stop_channels()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._manager = self._client = self._directory = None
