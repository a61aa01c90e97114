"""One Python session of a note: an ipykernel process of its own, run to the end of each execution.

Interrupt, completion and rich output are ipykernel's. The process is started with the first
execution, listens on private sockets only, and is gone with its owner, however that ends. Does not
know paragraphs; what the messages mean is ``python``'s matter.
"""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.local.kernel_client import complete
from submarine_zeppelin.local.kernel_process import KernelProcess
from submarine_zeppelin.local.worker import Worker

Hear = Callable[[str, Mapping[str, Any]], None]
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
        self._process = KernelProcess(python)
        self._rows = rows
        self._closed = False
        self._worker = Worker("submarine-kernel")

    @property
    def modules(self) -> Path | None:
        """Directory of modules that the session can import; None before the start."""
        directory = self._process.directory
        return directory / "modules" if directory is not None else None

    @property
    def running(self) -> bool:
        """Whether the process runs, and so has variables."""
        return not self._closed and self._process.alive

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
        if self._process.alive:
            return False
        self._process.end()
        self._process.start()
        self._prepare()
        return True

    def _run(
        self, code: str, hear: Hear, stopped: Callable[[], bool], *, silent: bool
    ) -> Mapping[str, Any]:
        client = self._process.client
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
        found = self._next(self._process.client.get_shell_msg)
        if found is None or found["parent_header"].get("msg_id") != message_id:
            return None
        content = found["content"]
        return content if isinstance(content, dict) else {}

    def complete(self, code: str, cursor: int) -> Mapping[str, Any]:
        """The kernel's proposals; none while it is busy for long."""
        manager = self._process.manager
        if manager is None:
            return {}
        worker = Worker("submarine-completion")
        try:
            return worker.do(lambda: complete(manager, code, cursor))
        finally:
            worker.end()

    def interrupt(self) -> None:
        """What Ctrl-C does in a terminal: to the program and whatever it has started."""
        self._process.signal(signal.SIGINT)

    def finish(self) -> None:
        """End the process: its program asked for that. The next execution starts another."""
        self._worker.do(self._process.end)

    def close(self) -> None:
        """End the process and all that it has left running; more than once is no error."""
        self._closed = True
        self._worker.do(self._process.end)
        self._worker.end()

    def _next(self, get: Callable[..., Any]) -> Any:
        try:
            return get(timeout=_LOOK)
        except queue.Empty:
            pass
        if not self.running:
            raise KernelDiedError(
                "The Python process of this note has ended, and its variables are gone.",
                "Run the paragraphs again; the next one starts a new process.",
            )
        return None

    def _prepare(self) -> None:
        text = Path(__file__).with_name("in_kernel.py").read_text("utf-8")
        code = (
            f"exec(compile({text!r}, '<submarine>', 'exec'), {{'ROWS': {self._rows}}})\n"
            f"import sys; sys.path.insert(1, {str(self.modules)!r}); del sys"
        )
        self._run(code, lambda kind, content: None, lambda: False, silent=True)
