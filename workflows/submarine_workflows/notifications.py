"""``--notify COMMAND``: somebody is told that a run did not end well.

The command gets one JSON object on its standard input and nothing of it on its command line, so no
text of a log or a notebook is ever read by a shell. It has a minute, or ten seconds where somebody
ends the run and will not wait; that it failed is said and changes nothing about the run.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line, printable
from submarine_workflows.masking import mask

TIMEOUT = 60.0
#: Where a run was told to end: most schedulers kill ten seconds to a minute and a half after that.
HURRIED_TIMEOUT = 10.0
_LOOK = 0.25
MAX_LOG = 8 << 10
_MAX_WORDS = 2000


@dataclass(frozen=True)
class Notice:
    """What is told.

    Attributes
    ----------
    state
        How it ended: ``FAILED``, ``KILLED``, ``CANCELLED``.
    reason
        Why, in a sentence or two.
    link
        Where more is to be seen: a page, or the folder of the run.
    log
        The last lines of the log.
    workflow, run, node, notebook
        Whose end it is; empty where there is none.
    jobs
        Ids of the jobs that failed.
    """

    state: str
    reason: str
    link: str = ""
    log: str = ""
    workflow: str = ""
    run: str = ""
    node: str = ""
    notebook: str = ""
    jobs: tuple[str, ...] = ()

    def to_json(
        self, secrets: Iterable[str] = (), environ: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Plain values, bounded, without secrets and without control characters."""
        hidden = tuple(secrets)
        found: dict[str, Any] = {"version": 1, **asdict(self), "jobs": list(self.jobs[:50])}
        for key, value in found.items():
            if isinstance(value, str):
                limit = MAX_LOG if key == "log" else _MAX_WORDS
                # Masked as a whole: half a secret at the cut would not be known again.
                text = mask(value[-4 * MAX_LOG :], hidden, environ)
                text = text[-limit:] if key == "log" else text
                found[key] = printable(text, limit)
        return found


def words_of(command: str) -> list[str]:
    """The words of a notifier's command.

    Raises
    ------
    UsageError
        If it has none, a quote is open, or its program is not there.
    """
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise UsageError(f"--notify: `{one_line(command, 80)}` cannot be read: {exc}.") from None
    if not words:
        raise UsageError("--notify wants a command, such as --notify ./tell.sh.")
    if shutil.which(words[0]) is None:
        raise UsageError(
            f"--notify: `{one_line(words[0], 80)}` is no program that can be started.",
            "Give its path, or a name on the PATH.",
        )
    return words


def notify(
    command: str,
    notice: Notice,
    *,
    say: Callable[[str], None],
    secrets: Iterable[str] = (),
    hurried: Callable[[], object] = lambda: False,
    timeout: float = TIMEOUT,
) -> bool:
    """Run ``command`` with ``notice`` on its standard input.

    Parameters
    ----------
    say
        Hears one sentence when the command failed.
    secrets
        Values that must not be told, beside those that are known by their look.
    hurried
        Whether somebody wants the run to be over; asked again and again.

    Returns
    -------
    bool
        Whether the command ended well; nothing is raised.
    """
    try:
        words = words_of(command)
        data = json.dumps(notice.to_json(secrets), ensure_ascii=True).encode() + b"\n"
        with tempfile.TemporaryFile() as output:
            trouble = _told(words, data, output, lambda: _limit(timeout, hurried))
            if trouble:
                trouble += _last_words(output)
    except UsageError as exc:
        trouble = exc.message
    except OSError as exc:
        trouble = f"it cannot be started: {exc.strerror or exc}"
    if trouble:
        say(f"The notifier `{one_line(mask(command), 80)}` did not work: {trouble.rstrip('.')}.")
    return not trouble


def _limit(timeout: float, hurried: Callable[[], object]) -> float:
    return min(timeout, HURRIED_TIMEOUT) if hurried() else timeout


def _told(words: list[str], data: bytes, output: IO[bytes], limit: Callable[[], float]) -> str:
    """Why it did not work; empty: it did."""
    started = time.monotonic()
    # A file, not a pipe: whatever becomes of this process, the command gets all of it.
    with tempfile.TemporaryFile() as told:
        told.write(data)
        told.seek(0)
        process = subprocess.Popen(
            words, stdin=told, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        while True:
            left = limit() - (time.monotonic() - started)
            try:
                process.wait(max(min(_LOOK, left), 0.0))
                break
            except subprocess.TimeoutExpired:
                if left <= 0:
                    return f"it was ended after {limit():.12g} s"
    finally:
        if process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"it ended with code {process.returncode}" if process.returncode else ""


def _last_words(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - 2000, 0))
    lines = output.read(2000).decode("utf-8", "replace").strip().splitlines()
    return f": {one_line(mask(lines[-1]), 200)}" if lines else ""
