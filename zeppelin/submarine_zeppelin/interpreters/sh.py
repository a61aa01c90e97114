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
from collections.abc import Mapping

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin import properties as settings
from submarine_zeppelin.interpreters.notes import Paragraph, read_note, spellings_of
from submarine_zeppelin.interpreters.screen import Screen
from submarine_zeppelin.paragraph import (
    Code,
    Context,
    Interpreter,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    Result,
    Server,
)

_LOOK = 0.1
#: Seconds between asking a stopped script to end and killing it.
_PATIENCE = 3.0
_PIECE = 1 << 16


class ShellInterpreter(Interpreter):
    """The entry ``sh`` of one of Zeppelin's sessions."""

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._stops: dict[str, threading.Event] = {}

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run a paragraph's text; ``(only)`` and a recovered one are not run."""
        spellings_of(context.note_id).learn("sh", context.text)
        stop = threading.Event()
        with self._lock:
            self._stops[context.paragraph_id] = stop
        try:
            if context.recovering:
                return _said("The interpreter was started again; run this paragraph once more.")
            mine = self._mine(context)
            if "only" in context.options:
                return _said(_collected(mine))
            name = f"Paragraph {mine.number}" if mine is not None else "Paragraph"
            screen = Screen(output, settings.output_limit(self.properties))
            return self._run(text, name, screen, stop)
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except SubmarineError as error:
            return Result(Code.ERROR, (Message(Kind.TEXT, str(error)),))
        finally:
            with self._lock:
                if self._stops.get(context.paragraph_id) is stop:
                    del self._stops[context.paragraph_id]

    def cancel(self, context: Context) -> None:
        """End the paragraph's script."""
        with self._lock:
            stop = self._stops.get(context.paragraph_id)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """End all scripts."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()

    def _mine(self, context: Context) -> Paragraph | None:
        spellings = spellings_of(context.note_id)
        note = read_note(self.server.paragraphs(context.note_id, context.user), spellings)
        return next((item for item in note if item.paragraph_id == context.paragraph_id), None)

    def _run(self, text: str, name: str, screen: Screen, stop: threading.Event) -> Result:
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


def _collected(mine: Paragraph | None) -> str:
    file = mine.file if mine is not None else ""
    if file:
        return f"This paragraph is {file} of the program; it did not run here."
    return "It did not run here. Title it with a name such as prepare.sh to have it in the program."


def _said(text: str) -> Result:
    return Result(Code.SUCCESS, (Message(Kind.TEXT, text),))


INTERPRETER = ShellInterpreter
