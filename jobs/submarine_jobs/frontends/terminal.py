"""Front end of the command line: questions, logs and the display of a waiting command.

Steps and warnings are written to stderr; stdout has only results and logs.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import queue
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends.base import Frontend
from submarine_jobs.text import TerminalFilter, one_line, printable
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import LogChunk
    from submarine_jobs.client import Job
    from submarine_runtime.protocol import JobRecord

_ERASE = "\r\x1b[K"


class StatusLine:
    """The last line of a terminal, rewritten in place on stderr; safe to use from several threads.

    Does nothing if stderr is not a terminal.

    Attributes
    ----------
    free
        Whether the cursor is at the beginning of a line without other output.
    """

    def __init__(self) -> None:
        self.free = True
        self._able = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._shown = ""
        self._lock = threading.RLock()

    def show(self, text: str) -> bool:
        """Replace the text of the line; return False if stderr is not a terminal."""
        with self._lock:
            if self._able and self.free and text != self._shown:
                self._shown = text
                width = max(shutil.get_terminal_size().columns - 1, 20)
                sys.stderr.write(_ERASE + one_line(text, width))
                sys.stderr.flush()
        return self._able

    def clear(self) -> None:
        """Erase the line."""
        with self._lock:
            if self._shown:
                self._shown = ""
                sys.stderr.write(_ERASE)
                sys.stderr.flush()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[StatusLine]:
        """Erase the line while other output is written; other threads cannot show it."""
        with self._lock:
            self.clear()
            yield self


#: Maximum length of a line in characters.
MAX_SAID = 100_000
_QUEUE = 256
_SLICE = 0.2
#: Timeout in seconds for more output of the log after the end of the job.
_LAST_LOG = 60.0


class TerminalFrontend(Frontend):
    """The command line, with or without a terminal.

    Parameters
    ----------
    json_asked
        The output is one JSON value, without logs.
    """

    kind = "cli"

    def __init__(self, *, json_asked: bool) -> None:
        super().__init__()
        self.json_asked = json_asked
        self.interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        self._filters: defaultdict[str, TerminalFilter] = defaultdict(TerminalFilter)
        self._status = StatusLine()
        #: Whether the last line of the log on stdout is incomplete.
        self.line_open = False

    def say(self, text: str) -> None:
        """Write one line to stderr."""
        with self._status.hidden():
            print(printable(text, MAX_SAID), file=sys.stderr, flush=True)

    def show_progress(self, text: str) -> bool:
        """Replace the last line of the terminal; False if stderr is not a terminal."""
        if text:
            return self._status.show(text)
        self._status.clear()
        return True

    def confirm(self, question: str) -> bool:
        """Ask on stderr; every answer except y and yes is no."""
        if not self.interactive:
            return False
        asked = printable(question, MAX_SAID)
        print(f"{asked} [y/N] ", end="", file=sys.stderr, flush=True)
        try:
            return sys.stdin.readline(16).strip().lower() in ("y", "yes")
        except (EOFError, OSError):
            return False

    def ask_password(self, question: str) -> str | None:
        """Ask on the terminal, without echo."""
        if not self.interactive:
            return None
        return getpass.getpass(f"{printable(question, MAX_SAID)} ", stream=sys.stderr)

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Write stderr of the job to stderr, other streams to stdout; filtered for a terminal."""
        if self.json_asked:
            return
        target = sys.stderr if stream == "stderr" else sys.stdout
        if target is sys.stdout and data:
            self.line_open = not data.endswith(b"\n")
        if not target.isatty():
            target.flush()
            target.buffer.write(data)
            target.flush()
            return
        with self._status.hidden() as status:
            target.write(self._filters[stream].feed(data))
            target.flush()
            # The status line stays hidden until a progress bar of the job ends its line.
            status.free = data.endswith(b"\n")

    def finish(self) -> None:
        """Write the rest of the filtered output, and reset the colours of the terminal."""
        for stream, terminal_filter in self._filters.items():
            target = sys.stderr if stream == "stderr" else sys.stdout
            rest = terminal_filter.feed(b"", final=True)
            if rest and target.isatty():
                target.write(rest)
                target.flush()

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show states on stderr, and the log, until the job has ended."""
        # cost: the display of states and of the log, which few commands need.
        from submarine_jobs.frontends.wait_display import StateDisplay

        states = StateDisplay(job, self.say if not self.json_asked else None)
        follower = _Follower(job) if log and not self.json_asked else None
        try:
            with states:
                while not states.ended.wait(0 if follower and follower.busy else _SLICE):
                    self._drain(follower)
                    if not self.json_asked:
                        self._status.show(states.line())
                deadline = time.monotonic() + _LAST_LOG
                while follower and not follower.done and time.monotonic() < deadline:
                    if follower.busy:  # the timeout starts again with each chunk
                        deadline = time.monotonic() + _LAST_LOG
                    self._drain(follower)
                    time.sleep(_SLICE / 4)
                if follower and not (follower.done and follower.whole):
                    self.say(f"-- the log is not complete here: `submarine logs {job.id}` --")
        except KeyboardInterrupt:
            if on_interrupt == "cancel":
                self.say(_("Interrupted: cancelling {job} …").format(job=job.id))
                job.cancel("interrupted")
            raise
        finally:
            self._status.clear()
            if follower is not None:
                follower.stop()
        return states.record

    def _drain(self, follower: _Follower | None) -> None:
        if follower is None:
            return
        for chunk in follower.take():
            if chunk.note:
                self.say(f"-- {chunk.note} --")
            else:
                self.write(chunk.data, chunk.stream)


class _Follower:
    """Reads the log of a job in a thread, so that an interrupt ends the wait immediately."""

    def __init__(self, job: Job) -> None:
        self._chunks: queue.Queue[LogChunk] = queue.Queue(_QUEUE)
        self._stop = threading.Event()
        #: Whether the log was followed to the end of the job.
        self.whole = False
        self._thread = threading.Thread(
            target=self._run, args=(job,), name="submarine-follow", daemon=True
        )
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether all chunks were read and shown."""
        return not self._thread.is_alive() and self._chunks.empty()

    @property
    def busy(self) -> bool:
        """Whether chunks wait to be shown."""
        return not self._chunks.empty()

    def take(self) -> list[LogChunk]:
        """Return the chunks in the queue."""
        found: list[LogChunk] = []
        while len(found) < _QUEUE:
            try:
                found.append(self._chunks.get_nowait())
            except queue.Empty:
                break
        return found

    def stop(self) -> None:
        """Stop the thread after its current chunk."""
        self._stop.set()

    def _run(self, job: Job) -> None:
        try:
            for chunk in job.follow():
                while not self._stop.is_set():
                    try:
                        self._chunks.put(chunk, timeout=_SLICE)
                        break
                    except queue.Full:
                        continue
                if self._stop.is_set():
                    return
            self.whole = True
        except SubmarineError:
            return
