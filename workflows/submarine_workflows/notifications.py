"""Run the command of ``--notify`` when a run does not succeed.

The command receives one JSON object on its standard input. Its command line contains no data, so no
shell parses text of a log or notebook. It has one minute, or ten seconds if the run was stopped. A
failure of the command is reported and does not affect the run.

Secrets are masked. They are recognised by value (variables with a secret's name), by position
(``password=...``, a password in a URL) and by form (a private key); others are not recognised.
"""

from __future__ import annotations

import json
import os
import re
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
from submarine_runtime.translation import _

MASK = "***"
_NAMES_OF_SECRETS = (
    r"passw(?:or)?d|passphrase|pwd|secret|token(?!s|iz)|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?"
)
_SECRET_NAME = re.compile(_NAMES_OF_SECRETS, re.IGNORECASE)
#: Masking shorter values would remove harmless words.
_MIN_SECRET_LENGTH = 6
#: A text may also begin within a key.
_KEY = re.compile(
    r"(?:-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----|\A(?=[\w+/=\s]+-----END [A-Z ]{0,40}PRIVATE))"
    r".*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_URL = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@?#'\"]{0,200}):[^\s/@'\"]{1,500}@")
_HEADER = re.compile(r"\b(bearer|basic|digest|negotiate)(\s+)[\w+/=.~-]{6,4000}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"((?:{_NAMES_OF_SECRETS})[\w-]{{0,40}}[\"']?(?:\s{{0,4}}[=:]\s{{0,4}}|\s{{1,4}}(?=\S)))"
    r"(\"[^\"\n]{1,4000}\"|'[^'\n]{1,4000}'|[^\s,;&\"'})\]]{1,4000})",
    re.IGNORECASE,
)
TIMEOUT = 60.0
#: Limit for a stopped run: most schedulers kill it 10 to 90 seconds after SIGTERM.
STOPPED_TIMEOUT = 10.0
_POLL_INTERVAL = 0.25
MAX_LOG = 8 << 10
_MAX_TEXT = 2000


def mask(text: str, secrets: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Return ``text`` with ``***`` in place of every secret.

    Parameters
    ----------
    secrets
        Values known to be secret, such as the token of a job.
    environ
        Variables with a secret's name contain secret values; by default those of this process.
    """
    known = {value for value in secrets if value}
    known.update(_environment_secrets(os.environ if environ is None else environ))
    # Longest first: one value may be part of another.
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, MASK)
    text = _KEY.sub(MASK, text)
    text = _URL.sub(rf"\1:{MASK}@", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    return _ASSIGNED.sub(_mask_assignment, text)


def _environment_secrets(environ: Mapping[str, str]) -> set[str]:
    return {
        value
        for name, value in environ.items()
        if len(value) >= _MIN_SECRET_LENGTH
        and _SECRET_NAME.search(name)
        and not os.path.exists(value)
    }


def _mask_assignment(match: re.Match[str]) -> str:
    before, _ = match.groups()
    if before[-1].isspace() and before.rstrip()[-1] not in "=:":
        # "the token expired" is a sentence; `--db-token 8f3a...` is an option.
        word = match.string[max(match.start() - 60, 0) : match.start()].split()
        if not (word and word[-1].startswith("-")):
            return match.group(0)
    return f"{before}{MASK}"


@dataclass(frozen=True)
class Notice:
    """Content of a notification.

    Attributes
    ----------
    state
        Final state: ``FAILED``, ``KILLED``, ``CANCELLED``.
    reason
        One or two sentences.
    link
        Page or folder of the run.
    log
        Last lines of the log.
    workflow, run, node, notebook
        What has ended; empty if not applicable.
    jobs
        Ids of failed jobs.
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
        """Return plain values, truncated, without secrets and control characters."""
        hidden = tuple(secrets)
        found: dict[str, Any] = {"version": 1, **asdict(self), "jobs": list(self.jobs[:50])}
        for key, value in found.items():
            if isinstance(value, str):
                limit = MAX_LOG if key == "log" else _MAX_TEXT
                # Mask before truncation: half a secret would not be recognised.
                text = mask(value[-4 * MAX_LOG :], hidden, environ)
                text = text[-limit:] if key == "log" else text
                found[key] = printable(text, limit)
        return found


def parse_command(command: str) -> list[str]:
    """Split the command line of a notifier.

    Raises
    ------
    UsageError
        If it is empty, has an unclosed quote, or its program does not exist.
    """
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise UsageError(
            _("--notify: `{command}` cannot be parsed: {error}.").format(
                command=one_line(command, 80), error=exc
            )
        ) from None
    if not words:
        raise UsageError(_("--notify requires a command, such as --notify ./tell.sh."))
    if shutil.which(words[0]) is None:
        raise UsageError(
            _("--notify: `{words}` is not an executable program.").format(
                words=one_line(words[0], 80)
            ),
            _("Give its path, or a name on the PATH."),
        )
    return words


def notify(
    command: str,
    notice: Notice,
    *,
    say: Callable[[str], None],
    secrets: Iterable[str] = (),
    stopped: Callable[[], object] = lambda: False,
    timeout: float = TIMEOUT,
) -> bool:
    """Run ``command`` with ``notice`` on its standard input.

    Parameters
    ----------
    say
        Called with one sentence when the command failed.
    secrets
        Further values to mask.
    stopped
        Returns whether the run was stopped; checked repeatedly.

    Returns
    -------
    bool
        Whether the command succeeded; no exception is raised.
    """
    try:
        words = parse_command(command)
        data = json.dumps(notice.to_json(secrets), ensure_ascii=True).encode() + b"\n"
        with tempfile.TemporaryFile() as output:
            failure = _run_command(words, data, output, lambda: _limit(timeout, stopped))
            if failure:
                failure += _last_output(output)
    except UsageError as exc:
        failure = exc.message
    except OSError as exc:
        failure = _("it cannot be started: {strerror}").format(strerror=exc.strerror or exc)
    if failure:
        say(
            _("The notifier `{command}` failed: {failure}.").format(
                command=one_line(mask(command), 80), failure=failure.rstrip(".")
            )
        )
    return not failure


def _limit(timeout: float, stopped: Callable[[], object]) -> float:
    return min(timeout, STOPPED_TIMEOUT) if stopped() else timeout


def _run_command(
    words: list[str], data: bytes, output: IO[bytes], limit: Callable[[], float]
) -> str:
    """Return the reason of a failure; empty on success."""
    started = time.monotonic()
    # A file, not a pipe: the command receives all of it even if this process ends.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(data)
        stdin.seek(0)
        process = subprocess.Popen(
            words, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        while True:
            left = limit() - (time.monotonic() - started)
            try:
                process.wait(max(min(_POLL_INTERVAL, left), 0.0))
                break
            except subprocess.TimeoutExpired:
                if left <= 0:
                    return _("it was stopped after {limit:.12g} s").format(limit=limit())
    finally:
        if process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return (
        _("it ended with code {returncode}").format(returncode=process.returncode)
        if process.returncode
        else ""
    )


def _last_output(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - 2000, 0))
    lines = output.read(2000).decode("utf-8", "replace").strip().splitlines()
    return f": {one_line(mask(lines[-1]), 200)}" if lines else ""
