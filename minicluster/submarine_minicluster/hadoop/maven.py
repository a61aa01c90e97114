"""Maven as the way to jars: those that a POM names, and all that they need, copied into a folder.

One broken connection among hundreds of downloads fails all of it, so it is tried again, which goes
on with what is missing. Keeps nothing: that is for those who ask (``artifacts``).
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

TRIES = 3
#: Seconds between two tries.
PAUSE = 5.0
#: A server that falls silent is given up after a minute; Maven would wait for half an hour.
_PATIENCE = ("-Dmaven.wagon.rto=60000", "-Daether.connector.requestTimeout=60000")
_FETCHED = re.compile(r"Downloaded from .*\.jar ")
#: What a repository answers; nothing would change that.
_LASTING = "Could not find artifact"


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
        What they are, for a message.
    java
        The Java that runs Maven.
    options
        More words for Maven's command line.
    progress
        Called with a line about what is happening.

    Raises
    ------
    MiniclusterError
        If there is no Maven, or it failed each time: its own words.
    """
    if shutil.which("mvn") is None:
        raise MiniclusterError(
            f"Maven (mvn) is not on PATH, and it fetches {what}: "
            "install it (Debian: apt-get install maven)."
        )

    def again(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        progress(f"Maven failed, trying again in {PAUSE:g} s: {error}")

    retrying = Retrying(
        stop=stop_after_attempt(TRIES),
        wait=wait_fixed(PAUSE),
        retry=retry_if_exception(
            lambda error: isinstance(error, _FailedError) and _LASTING not in str(error)
        ),
        before_sleep=again,
        reraise=True,
    )
    try:
        retrying(_copy, pom, target, java, options, progress)
    except _FailedError as exc:
        raise MiniclusterError(f"Maven could not fetch {what}: {exc}") from None


class _FailedError(Exception):
    """One try has failed; Maven's own words."""


def _copy(
    pom: Path, target: Path, java: Java, options: Sequence[str], progress: Callable[[str], None]
) -> None:
    """One try."""
    command = ["mvn", "-B", "-f", str(pom), *_PATIENCE, *options]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DoutputDirectory={target}"]
    lines: list[str] = []
    fetched = 0
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=target.parent,
        # The caller's environment (proxies, Maven's own options) with the Java we chose.
        env={**os.environ, "JAVA_HOME": str(java.home)},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if _FETCHED.search(line):
                fetched += 1
                if fetched % 50 == 0:
                    progress(f"fetched {fetched} jars")
            elif "[ERROR]" in line:
                lines.append(line.split("[ERROR]", 1)[1].strip())
    if process.returncode or not target.is_dir() or not list(target.glob("*.jar")):
        reason = next((line for line in lines if line), "it printed no error")
        raise _FailedError(reason[:600])
