"""Execute code in an ipykernel process, with interrupt, completion and rich output.

The process starts with the first execution, listens on private sockets and ends with this process.
``kernel_messages`` converts its messages.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from submarine_jobs.display import TABLE_MIME_TYPE
from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_zeppelin.local.context_server import ContextServer
from submarine_zeppelin.local.kernel_process import KernelProcess, complete

T = TypeVar("T")
MessageHandler = Callable[[str, Mapping[str, Any]], None]
#: Seconds between two checks for messages, interrupts and the end of the process.
_POLL_INTERVAL = 0.1
#: Seconds without messages after the reply, after which a missing idle status counts as lost.
_IDLE_TIMEOUT = 2.0
#: Seconds between two interrupts of a stopped execution, in case the program loses one.
_INTERRUPT_INTERVAL = 5.0


class KernelDiedError(SubmarineError):
    """The process of the session has ended, and its variables are lost."""


class Kernel:
    """A Python session in an ipykernel process.

    Parameters
    ----------
    python
        Python with ipykernel; empty: the Python of this process.
    rows
        Maximum number of rows in a table.
    context
        Answers the calls of the session's object ``z``.
    """

    def __init__(self, python: str, rows: int, context: ContextServer) -> None:
        self._process = KernelProcess(python)
        self._rows = rows
        self._context = context
        self._closed = False
        self._worker = Worker("submarine-kernel")

    @property
    def modules(self) -> Path | None:
        """Directory from which the session imports modules; None before the start."""
        directory = self._process.directory
        return directory / "modules" if directory is not None else None

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return not self._closed and self._process.alive

    def start(self) -> bool:
        """Start the process unless it runs, and return whether it was started.

        Raises
        ------
        UsageError
            If the Python does not exist or has no ipykernel.
        """
        return self._worker.run(self._start)

    def run(
        self,
        code: str,
        handler: MessageHandler,
        stopped: Callable[[], bool],
        *,
        silent: bool = False,
    ) -> Mapping[str, Any]:
        """Execute ``code``. ``handler`` receives type and content of each message.

        Returns
        -------
        Mapping
            Content of the reply: ``status``, ``execution_count``, and the error if there is one.

        Raises
        ------
        KernelDiedError
            If the process ends during the execution.
        """
        return self._worker.run(lambda: self._run(code, handler, stopped, silent=silent))

    def _start(self) -> bool:
        if self._closed:
            raise KernelDiedError(_("The session has ended."), _("Run the paragraph again."))
        if self._process.alive:
            return False
        self._process.end()
        self._process.start()
        self._prepare()
        return True

    def _run(
        self, code: str, handler: MessageHandler, stopped: Callable[[], bool], *, silent: bool
    ) -> Mapping[str, Any]:
        client = self._process.client
        message_id = client.execute(
            code, silent=silent, store_history=not silent, allow_stdin=False, stop_on_error=False
        )
        started, idle, next_interrupt = silent, False, 0.0
        reply: Mapping[str, Any] | None = None
        last_message_at = time.monotonic()
        while not idle and (reply is None or time.monotonic() - last_message_at < _IDLE_TIMEOUT):
            if reply is None and started and stopped() and time.monotonic() >= next_interrupt:
                next_interrupt = time.monotonic() + _INTERRUPT_INTERVAL
                self.interrupt()
            message = self._next(client.get_iopub_msg)
            if message is None:
                handler("tick", {})
                if reply is None and (reply := self._reply(message_id)) is not None:
                    last_message_at = time.monotonic()
                continue
            last_message_at = time.monotonic()
            if message["parent_header"].get("msg_id") == message_id:
                kind, content = message["msg_type"], message["content"]
                started = started or kind == "execute_input"
                idle = kind == "status" and content["execution_state"] == "idle"
                handler(kind, content)
        while reply is None:
            reply = self._reply(message_id)
        return reply

    def _reply(self, message_id: str) -> Mapping[str, Any] | None:
        """Return the reply to an execution if it has arrived."""
        found = self._next(self._process.client.get_shell_msg)
        if found is None or found["parent_header"].get("msg_id") != message_id:
            return None
        content = found["content"]
        return content if isinstance(content, dict) else {}

    def complete(self, code: str, cursor: int) -> Mapping[str, Any]:
        """Return the kernel's completions; none if it does not reply in time."""
        manager = self._process.manager
        if manager is None:
            return {}
        worker = Worker("submarine-completion")
        try:
            return worker.run(lambda: complete(manager, code, cursor))
        finally:
            worker.stop()

    def interrupt(self) -> None:
        """Send SIGINT to the program and its child processes, as Ctrl-C does in a terminal."""
        self._process.signal(signal.SIGINT)

    def end_process(self) -> None:
        """End the process. The next execution starts a new one."""
        self._worker.run(self._process.end)

    def close(self) -> None:
        """End the process and its child processes. May be called again."""
        self._closed = True
        self._context.close()
        self._worker.run(self._process.end)
        self._worker.stop()

    def _next(self, get: Callable[..., Any]) -> Any:
        try:
            return get(timeout=_POLL_INTERVAL)
        except queue.Empty:
            pass
        if not self.running:
            raise KernelDiedError(
                _("The Python process of this note has ended, and its variables are lost."),
                _("Run the paragraphs again; the next run starts a new process."),
            )
        return None

    def _prepare(self) -> None:
        text = Path(__file__).with_name("kernel_setup.py").read_text("utf-8")
        names = {"ROWS": self._rows, "TABLE": TABLE_MIME_TYPE}
        code = (
            f"exec(compile({text!r}, '<submarine>', 'exec'), {names!r})\n"
            f"import sys; sys.path.insert(1, {str(self.modules)!r}); del sys"
        )
        if self._process.directory is not None:
            path = self._process.directory / "z"
            self._context.start(path)
            text = Path(__file__).with_name("kernel_context.py").read_text("utf-8")
            code += (
                f"\n_submarine_z = {{'SOCKET': {str(path)!r}, '__name__': 'zeppelin'}}\n"
                f"exec(compile({text!r}, '<submarine>', 'exec'), _submarine_z)\n"
                "z = _submarine_z['ZeppelinContext'](); del _submarine_z"
            )
        self._run(code, lambda kind, content: None, lambda: False, silent=True)


class Worker:
    """Thread that runs functions in sequence and closes its event loop.

    ``jupyter_client`` creates an event loop in each thread that calls it and does not close it. The
    thread starts with the first call. It is a daemon, so it does not delay the exit of the process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], T]) -> T:
        """Run a function in the thread, wait, and return its result or raise its exception."""
        future: Future[T] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, daemon=True, name=self._name)
                self._thread.start()
        self._work.put((work, future))
        return future.result()

    def stop(self) -> None:
        """Stop the thread after pending calls. A later call starts a new thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, future = item
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del item, work, future
        with contextlib.suppress(Exception):
            # cost: memory; a thread that used no kernel does not need it.
            from jupyter_core.utils import ensure_event_loop

            ensure_event_loop().close()
