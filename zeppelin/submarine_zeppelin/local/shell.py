"""The interpreter ``%submarine.sh``, which runs each paragraph in its own bash process.

A paragraph with the title of a shell file, such as ``prepare.sh``, is also a file of the program.
All processes that a paragraph starts end with it.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time

from submarine_runtime.translation import _
from submarine_zeppelin.display import OutputBuffer
from submarine_zeppelin.interface import (
    Code,
    Context,
    Output,
    Result,
    number_property,
    output_limit,
)
from submarine_zeppelin.local.interpreter import LocalInterpreter
from submarine_zeppelin.notes import Paragraph

_POLL_INTERVAL = 0.1
#: Seconds between SIGTERM and SIGKILL for a stopped script.
_GRACE = 3.0
_CHUNK_SIZE = 1 << 16


class ShellInterpreter(LocalInterpreter):
    """Interpreter of one Zeppelin session."""

    entry = "sh"

    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        own: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        name = _("Paragraph {number}").format(number=own.number) if own is not None else "Paragraph"
        buffer = OutputBuffer(output, output_limit(self.properties))
        limit = number_property(self.properties, "shell.command.timeout.millisecs") / 1000
        deadline = time.monotonic() + limit if limit else None
        reason = ""
        with _Script(text, name) as script:
            while (chunk := script.read()) is not None:
                buffer.write(chunk)
                buffer.refresh()
                if stop.is_set():
                    reason = reason or _("Stopped.")
                elif deadline is not None and time.monotonic() > deadline:
                    reason = reason or _(
                        "Ended after {limit:g} s (shell.command.timeout.millisecs)."
                    ).format(limit=limit)
                if reason:
                    script.terminate()
            code = script.code
        if not reason and code:
            reason = (
                _("Exit code {code}.").format(code=code)
                if code > 0
                else _("Ended by signal {code}.").format(code=-code)
            )
        if reason:
            buffer.write(f"{reason}\n")
        return Result(Code.ERROR if reason else Code.SUCCESS, buffer.messages())

    def _describe_collected(self, own: Paragraph | None) -> str:
        file = own.file if own is not None else ""
        if file:
            return _(
                "This paragraph is the file {file} of the program and was not run here."
            ).format(file=file)
        hint = _("Give it a title such as prepare.sh to make it a file of the program.")
        return _("This paragraph was not run here. {hint}").format(hint=hint)


class _Script:
    """A bash process with its script in an anonymous file, which process lists do not show."""

    def __init__(self, text: str, name: str) -> None:
        self._script = os.memfd_create("paragraph", os.MFD_CLOEXEC)
        os.write(self._script, text.replace("\r\n", "\n").encode("utf-8", "replace") + b"\n")
        os.lseek(self._script, 0, os.SEEK_SET)
        self._place, self._name = f"/dev/fd/{self._script}: line", f"{name}: line"
        self._process = subprocess.Popen(
            [shutil.which("bash") or "/bin/sh", f"/dev/fd/{self._script}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(self._script,),
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._terminated_at = 0.0

    def __enter__(self) -> _Script:
        return self

    def __exit__(self, *exc: object) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        os.close(self._script)

    @property
    def code(self) -> int:
        """Exit code, after ``read`` has returned None."""
        return self._process.wait()

    def read(self) -> str | None:
        """Return new output, possibly empty; None after the end of the script.

        Does not wait for processes in the background.
        """
        if select.select([self._pipe], [], [], _POLL_INTERVAL)[0]:
            data = os.read(self._pipe, _CHUNK_SIZE)
            if data:
                return self._decoder.decode(data).replace(self._place, self._name)
        elif self._process.poll() is None:
            if self._terminated_at and time.monotonic() > self._terminated_at + _GRACE:
                self._signal(signal.SIGKILL)
            return ""
        return None

    def terminate(self) -> None:
        """Send SIGTERM; ``read`` sends SIGKILL later."""
        if not self._terminated_at:
            self._terminated_at = time.monotonic()
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


INTERPRETER = ShellInterpreter
