"""``%submarine.sh``: a paragraph runs here in a bash of its own, streamed, and ended as a whole.

One that is titled with the name of a shell file (``prepare.sh``) is that file in the program's
directory besides; ``(only)`` does not run it here. Nothing that it has started outlives it.
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

from submarine_zeppelin.display import Screen
from submarine_zeppelin.interface import Code, Context, Output, Result, properties as settings
from submarine_zeppelin.local.interpreter import LocalInterpreter
from submarine_zeppelin.notes import Paragraph

_LOOK = 0.1
#: Seconds between asking a stopped script to end and killing it.
_PATIENCE = 3.0
_PIECE = 1 << 16


class ShellInterpreter(LocalInterpreter):
    """The entry ``sh`` of one of Zeppelin's sessions."""

    entry = "sh"

    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        mine: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        name = f"Paragraph {mine.number}" if mine is not None else "Paragraph"
        screen = Screen(output, settings.output_limit(self.properties))
        limit = settings.number(self.properties, "shell.command.timeout.millisecs") / 1000
        until = time.monotonic() + limit if limit else None
        why = ""
        with _Script(text, name) as script:
            while (piece := script.read()) is not None:
                screen.text(piece)
                screen.tick()
                if stop.is_set():
                    why = why or "Stopped."
                elif until is not None and time.monotonic() > until:
                    why = why or f"Ended after {limit:g} s (shell.command.timeout.millisecs)."
                if why:
                    script.end()
            code = script.code
        if not why and code:
            why = f"Exit code {code}." if code > 0 else f"Ended by signal {-code}."
        if why:
            screen.text(f"{why}\n")
        return Result(Code.ERROR if why else Code.SUCCESS, screen.messages())

    def _collected(self, mine: Paragraph | None) -> str:
        file = mine.file if mine is not None else ""
        if file:
            return f"This paragraph is {file} of the program; it did not run here."
        title = "Title it with a name such as prepare.sh to have it in the program."
        return f"It did not run here. {title}"


class _Script:
    """A bash with a script in a file that has no name: a process list shows nothing of it."""

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
        self._asked_at = 0.0

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
        """Its exit code, once ``read`` has said that it is over."""
        return self._process.wait()

    def read(self) -> str | None:
        """What it has printed since, maybe nothing; None after its end.

        What it has left running in the background is not waited for.
        """
        if select.select([self._pipe], [], [], _LOOK)[0]:
            data = os.read(self._pipe, _PIECE)
            if data:
                return self._decoder.decode(data).replace(self._place, self._name)
        elif self._process.poll() is None:
            if self._asked_at and time.monotonic() > self._asked_at + _PATIENCE:
                self._signal(signal.SIGKILL)
            return ""
        return None

    def end(self) -> None:
        """Ask it to end; it is killed when it does not."""
        if not self._asked_at:
            self._asked_at = time.monotonic()
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


INTERPRETER = ShellInterpreter
