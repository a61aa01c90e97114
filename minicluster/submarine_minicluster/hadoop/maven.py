"""Copy the jars that a POM names, and their dependencies, into a directory with Maven.

Maven fails if one of hundreds of downloads fails. It is run again then, and downloads only the
missing jars.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.machine import Java
from submarine_runtime.translation import _

ATTEMPTS = 3
#: Seconds between two attempts.
PAUSE = 5.0
#: Time out after a minute without data; Maven's default is half an hour.
_TIMEOUTS = ("-Dmaven.wagon.rto=60000", "-Daether.connector.requestTimeout=60000")
_DOWNLOADED = re.compile(r"Downloaded from .*\.jar ")
#: Error that does not disappear on a further attempt.
_PERMANENT = "Could not find artifact"


def copy_jars(
    what: str,
    pom: Path,
    target: Path,
    java: Java,
    options: Sequence[str],
    progress: Callable[[str], None],
) -> None:
    """Copy the jars of ``pom`` into ``target``.

    Parameters
    ----------
    what
        Description of the jars, for messages.
    java
        The Java that runs Maven.
    options
        Additional options for Maven's command line.
    progress
        Called with a line about each step.

    Raises
    ------
    MiniclusterError
        If Maven is not installed, or fails on each attempt; with Maven's error message.
    """
    if shutil.which("mvn") is None:
        raise MiniclusterError(
            _(
                "Maven (mvn), which downloads {what}, is not on PATH. Install it (Debian: "
                "apt-get install maven)."
            ).format(what=what)
        )

    def report(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        progress(
            _("Maven failed, trying again in {pause:g} s: {error}").format(pause=PAUSE, error=error)
        )

    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_fixed(PAUSE),
        retry=retry_if_exception(
            lambda error: isinstance(error, _MavenError) and _PERMANENT not in str(error)
        ),
        before_sleep=report,
        reraise=True,
    )
    try:
        retrying(_copy, pom, target, java, options, progress)
    except _MavenError as exc:
        raise MiniclusterError(
            _("Maven could not download {what}: {error}").format(what=what, error=exc)
        ) from None


class _MavenError(Exception):
    """One attempt failed; the message is Maven's."""


def _copy(
    pom: Path, target: Path, java: Java, options: Sequence[str], progress: Callable[[str], None]
) -> None:
    """Run Maven once."""
    command = ["mvn", "-B", "-f", str(pom), *_TIMEOUTS, *options]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DoutputDirectory={target}"]
    lines: list[str] = []
    downloaded = 0
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=target.parent,
        # The caller's environment (proxies, Maven options) with the selected Java.
        env={**os.environ, "JAVA_HOME": str(java.home)},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if _DOWNLOADED.search(line):
                downloaded += 1
                if downloaded % 50 == 0:
                    progress(_("downloaded {downloaded} jars").format(downloaded=downloaded))
            elif "[ERROR]" in line:
                lines.append(line.split("[ERROR]", 1)[1].strip())
    if process.returncode or not target.is_dir() or not list(target.glob("*.jar")):
        reason = next((line for line in lines if line), _("it printed no error"))
        raise _MavenError(reason[:600])
