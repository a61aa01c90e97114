"""One TensorBoard process: started, asked whether it lives, started again, ended.

Where it gets its files from is ``board``'s. It dies with this process: its standard input is ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import selectors
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from submarine_jobs.errors import SubmarineError
from submarine_jobs.tensorboards.serving import NOT_INSTALLED

#: Seconds that a start may take: its first import after an installation compiles everything.
START_SECONDS = 90.0
_END_SECONDS = 3.0
#: A Unix socket's path is shorter than this, whatever the file system takes.
_LONGEST_SOCKET = 100
_MAX_ANSWER = 1 << 16


class NoTensorBoardError(SubmarineError):
    """The package tensorboard is not there."""


def require_tensorboard() -> None:
    """Raise NoTensorBoardError where this Python has no TensorBoard."""
    if importlib.util.find_spec("tensorboard") is None:
        raise _not_installed()


class Process:
    """A TensorBoard over one directory.

    Parameters
    ----------
    logdir
        What it shows.
    log
        File for what it prints.
    socket_folder
        Private directory for its Unix socket; None: it listens on loopback instead.
    port
        On loopback; 0: any that is free.

    Attributes
    ----------
    socket
        Path of its Unix socket; None on loopback.
    url
        Its page on loopback; other users of this machine are refused, and do not know its path.
    """

    def __init__(
        self, logdir: Path, log: Path, socket_folder: Path | None, *, title: str = "", port: int = 0
    ) -> None:
        self._logdir, self._log, self._title, self._port = logdir, log, title, port
        self._folder: str | None = None
        self.socket: str | None = None
        self._prefix = ""
        if socket_folder is None:
            self._prefix = f"/{secrets.token_urlsafe(24)}"
        else:
            self.socket = str(socket_folder / "tensorboard.sock")
            if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
                self._folder = tempfile.mkdtemp(prefix="submarine-")
                self.socket = f"{self._folder}/tensorboard.sock"
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start it, anew where it has died, and wait until it listens.

        Raises
        ------
        NoTensorBoardError
            If it is not installed.
        SubmarineError
            If it does not start; the message has its last words.
        """
        self.stop()
        require_tensorboard()
        if self.socket is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.socket)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "submarine_jobs.tensorboards.serving"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._logdir,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        try:
            self._greet(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; no error when it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """End it for good."""
        self.stop()
        if self._folder is not None:
            with suppress(OSError):
                os.unlink(f"{self._folder}/tensorboard.sock")
            with suppress(OSError):
                os.rmdir(self._folder)

    def _greet(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        order = {
            "logdir": str(self._logdir),
            "socket": self.socket,
            "port": self._port,
            "prefix": self._prefix,
            "title": self._title,
        }
        try:
            # Not among the arguments: those are for everybody on this machine to read.
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # it has died; the answer says so
        answer = self._answer(process)
        if answer.get("code") == NOT_INSTALLED:
            raise _not_installed()
        if "listens" not in answer:
            why = answer.get("error") or self.last_words() or "it ended without a word"
            raise SubmarineError(f"TensorBoard does not start: {why}.", "Look at its installation.")
        if self.socket is None:
            self.url = f"{str(answer['listens']).rstrip('/')}/"

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        deadline, data = time.monotonic() + START_SECONDS, b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in data and len(data) < _MAX_ANSWER:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return {"error": f"it did not answer within {START_SECONDS:.0f} s"}
                block = os.read(descriptor, _MAX_ANSWER)
                if not block:
                    return {}
                data += block
        with suppress(ValueError):
            found = json.loads(data)
            return found if isinstance(found, dict) else {}
        return {}

    def last_words(self) -> str:
        """The last line that it has printed."""
        with suppress(OSError):
            lines = self._log.read_bytes()[-2000:].decode("utf-8", "replace").split("\n")
            said = [line.strip() for line in lines if line.strip()]
            return said[-1][:300].rstrip(".") if said else ""
        return ""


def _not_installed() -> NoTensorBoardError:
    return NoTensorBoardError(
        f"TensorBoard is not installed in the Python that is to run it, {sys.executable}.",
        f"Install it there: {sys.executable} -m pip install tensorboard",
    )
