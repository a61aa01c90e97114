"""Execute code in an ipykernel process, with interrupt, completion and rich output.

The process starts with the first execution, listens on private sockets and ends with this process.
It may run in a container, where it shares no files with this machine. ``kernel_messages`` converts
its messages.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from submarine_jobs.display import TABLE_MIME_TYPE
from submarine_runtime.translation import _
from submarine_zeppelin.local.context_server import ContextServer
from submarine_zeppelin.local.kernel_process import KernelDiedError, SessionProcess, complete

T = TypeVar("T")
MessageHandler = Callable[[str, Mapping[str, Any]], None]


def _never() -> bool:
    return False


def _ignore(*_given: object) -> None: ...


#: Seconds between two checks for messages, interrupts and the end of the process.
_POLL_INTERVAL = 0.1
#: Seconds without messages after the reply, after which a missing idle status counts as lost.
_IDLE_TIMEOUT = 2.0
#: Seconds between two interrupts of a stopped execution, in case the program loses one.
_INTERRUPT_INTERVAL = 5.0
#: Seconds after a stop in which a container must be reachable and have begun the execution; and
#: after an execution in which its reply must arrive.
_BEGIN_SECONDS = 10.0
#: Prompt of the calls of ``z`` from a container, before the call in JSON.
CALL_PROMPT = "submarine-z:"


class Kernel:
    """A Python session in an ipykernel process.

    Parameters
    ----------
    process
        The process of the session, not started.
    rows
        Maximum number of rows in a table.
    context
        Answers the calls of the session's object ``z``.
    """

    def __init__(self, process: SessionProcess, rows: int, context: ContextServer) -> None:
        self._process = process
        self._rows = rows
        self._context = context
        self._closed = False
        self._worker = Worker("submarine-kernel")
        #: Directory from which the session imports modules, on the machine of the session.
        self.modules = ""

    @property
    def shares_files(self) -> bool:
        """Whether the session has the files of this machine."""
        return self._process.directory is not None

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return not self._closed and self._process.alive

    def start(
        self, show: Callable[[str], None] = _ignore, stopped: Callable[[], bool] = _never
    ) -> bool:
        """Start the process unless it runs, and return whether it was started.

        Parameters
        ----------
        show
            Called with what the start waits for.
        stopped
            Whether the start must end.

        Raises
        ------
        UsageError
            If the Python does not exist or has no ipykernel.
        KernelDiedError
            If the session was lost since the last execution; the next call starts a new one.
        """
        return self._worker.run(lambda: self._start(show, stopped))

    def run(
        self,
        code: str,
        handler: MessageHandler = _ignore,
        stopped: Callable[[], bool] = _never,
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

    def _start(self, show: Callable[[str], None], stopped: Callable[[], bool]) -> bool:
        if self._closed:
            raise KernelDiedError(_("The session has ended."), _("Run the paragraph again."))
        if self._process.alive:
            return False
        if lost := self._process.take_loss():
            raise lost
        self._process.start(show, lambda: stopped() or self._closed)
        self._prepare()
        return True

    def _run(
        self, code: str, handler: MessageHandler, stopped: Callable[[], bool], *, silent: bool
    ) -> Mapping[str, Any]:
        client = self._process.client
        message_id = client.execute(
            code, silent=silent, store_history=not silent, allow_stdin=False, stop_on_error=False
        )
        started, idle, next_interrupt, stopped_at = silent, False, 0.0, 0.0
        reply: Mapping[str, Any] | None = None
        last_message_at = time.monotonic()
        while not idle and (reply is None or time.monotonic() - last_message_at < _IDLE_TIMEOUT):
            if reply is None and stopped():
                stopped_at = stopped_at or time.monotonic()
                self._check_stop(started, stopped_at)
                if started and time.monotonic() >= next_interrupt:
                    next_interrupt = time.monotonic() + _INTERRUPT_INTERVAL
                    self.interrupt()
            if not self.shares_files:
                self._answer_call()
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
            if not self.shares_files and time.monotonic() > last_message_at + _BEGIN_SECONDS:
                raise KernelDiedError(
                    _("The answer of the session was lost."), _("Run the paragraph again.")
                )
            reply = self._reply(message_id)
        return reply

    def _check_stop(self, started: bool, stopped_at: float) -> None:
        """Raise an error if a stopped execution in a container cannot be interrupted.

        Messages to a container may be lost.
        """
        if self.shares_files or time.monotonic() < stopped_at + _BEGIN_SECONDS:
            return
        if not self._process.reachable:
            raise KernelDiedError(
                _("The container of this session cannot be reached now."),
                _("Run the paragraph again when the network or the node is back."),
            )
        if not started:
            raise KernelDiedError(
                _("The session has not begun this paragraph."), _("Run the paragraph again.")
            )

    def _answer_call(self) -> None:
        """Answer a call of ``z`` from a container, which arrives as a request for input."""
        client = self._process.client
        try:
            request = client.get_stdin_msg(timeout=0)
        except queue.Empty:
            return
        prompt = str(request["content"].get("prompt", ""))
        if prompt.startswith(CALL_PROMPT):
            client.input(self._context.answer(prompt[len(CALL_PROMPT) :].encode()))

    def _reply(self, message_id: str) -> Mapping[str, Any] | None:
        """Return the reply to an execution if it has arrived."""
        found = self._next(self._process.client.get_shell_msg)
        if found is None or found["parent_header"].get("msg_id") != message_id:
            return None
        content = found["content"]
        return content if isinstance(content, dict) else {}

    def complete(self, code: str, cursor: int) -> Mapping[str, Any]:
        """Return the kernel's completions; none if it does not reply in time."""
        worker = Worker("submarine-completion")
        try:
            return worker.run(lambda: complete(self._process, code, cursor))
        finally:
            worker.stop()

    def interrupt(self) -> None:
        """Send SIGINT to the program and its child processes, as Ctrl-C does in a terminal."""
        self._process.interrupt()

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
            lost = None if self._closed else self._process.take_loss()
            raise lost or KernelDiedError(
                _("The Python process of this note has ended, and its variables are lost."),
                _("Run the paragraphs again; the next run starts a new process."),
            )
        return None

    def _prepare(self) -> None:
        text = Path(__file__).with_name("kernel_setup.py").read_text("utf-8")
        names = {"ROWS": self._rows, "TABLE": TABLE_MIME_TYPE}
        directory, path = self._process.directory, ""
        if directory is not None:
            path = str(directory / "z")
            self._context.start(directory / "z")
        code = (
            f"exec(compile({text!r}, '<submarine>', 'exec'), {names!r})\n"
            "import os, sys, tempfile\n"
            "sys.path.insert(1, tempfile.mkdtemp(prefix='submarine-modules-', "
            f"dir={str(directory or '')!r} or os.getcwd()))\n"
            "print(sys.path[1], end='')\n"
            "del os, sys, tempfile\n"
        )
        text = Path(__file__).with_name("kernel_context.py").read_text("utf-8")
        variables = {"SOCKET": path, "PROMPT": CALL_PROMPT, "__name__": "zeppelin"}
        code += (
            f"_submarine_z = {variables!r}\n"
            f"exec(compile({text!r}, '<submarine>', 'exec'), _submarine_z)\n"
            "z = _submarine_z['ZeppelinContext'](); del _submarine_z"
        )
        printed: list[str] = []

        def handle(kind: str, content: Mapping[str, Any]) -> None:
            if kind == "stream" and content.get("name") == "stdout":
                printed.append(str(content["text"]))

        self._run(code, handle, _never, silent=True)
        self.modules = "".join(printed)


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
