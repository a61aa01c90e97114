"""A TensorBoard process: start, check, restart and stop it.

It ends with this process, which holds the other end of its standard input.
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
from submarine_runtime.translation import _

#: Timeout of a start; the first start after an installation compiles all modules.
START_SECONDS = 90.0
_END_SECONDS = 3.0
#: Maximum length of the path of a Unix socket.
_MAX_SOCKET_PATH = 100
_MAX_ANSWER = 1 << 16


class NoTensorBoardError(SubmarineError):
    """The package tensorboard is not installed."""


def require_tensorboard() -> None:
    """Raise NoTensorBoardError where this Python has no TensorBoard."""
    if importlib.util.find_spec("tensorboard") is None:
        raise _not_installed()


class Process:
    """A TensorBoard process over one directory.

    Parameters
    ----------
    logdir
        Directory with the event files.
    log
        File for its output.
    socket_folder
        Private directory for its Unix socket; None: it listens on loopback.
    port
        Port on loopback; 0: any free port.

    Attributes
    ----------
    socket
        Path of its Unix socket; None on loopback.
    url
        Its URL on loopback; other users of this machine are refused, and its path is secret.
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
            if len(os.fsencode(self.socket)) > _MAX_SOCKET_PATH:
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
        """Start or restart it, and wait until it listens.

        Raises
        ------
        NoTensorBoardError
            If it is not installed.
        SubmarineError
            If it does not start; the message includes its last line of output.
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
            self._configure(self._process)
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

    def _configure(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        configuration = {
            "logdir": str(self._logdir),
            "socket": self.socket,
            "port": self._port,
            "prefix": self._prefix,
            "title": self._title,
        }
        try:
            # Not in the arguments, which other users of this machine can read.
            process.stdin.write(json.dumps(configuration).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # it has ended; the answer contains the reason
        answer = self._answer(process)
        if answer.get("code") == NOT_INSTALLED:
            raise _not_installed()
        if "listens" not in answer:
            reason = answer.get("error") or self.last_log_line() or _("it ended without output")
            raise SubmarineError(
                _("TensorBoard does not start: {reason}.").format(reason=reason),
                _("Look at its installation."),
            )
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
                    return {
                        "error": _("it did not answer within {seconds:.0f} s").format(
                            seconds=START_SECONDS
                        )
                    }
                block = os.read(descriptor, _MAX_ANSWER)
                if not block:
                    return {}
                data += block
        with suppress(ValueError):
            found = json.loads(data)
            return found if isinstance(found, dict) else {}
        return {}

    def last_log_line(self) -> str:
        """Return the last line of its output."""
        with suppress(OSError):
            lines = self._log.read_bytes()[-2000:].decode("utf-8", "replace").split("\n")
            printed = [line.strip() for line in lines if line.strip()]
            return printed[-1][:300].rstrip(".") if printed else ""
        return ""


def _not_installed() -> NoTensorBoardError:
    return NoTensorBoardError(
        _("TensorBoard is not installed in the Python that is to run it, {executable}.").format(
            executable=sys.executable
        ),
        _("Install it there: {executable} -m pip install tensorboard").format(
            executable=sys.executable
        ),
    )
