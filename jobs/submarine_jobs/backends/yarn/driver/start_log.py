"""Find out from the end of its log why a driver did not start."""

from __future__ import annotations

import re
from pathlib import Path

from submarine_jobs.backends.yarn.driver.refusals import TABLE, first_line
from submarine_jobs.errors import ClusterError

_TAIL = 32 << 10
_ROWS: tuple[tuple[str, str, str], ...] = (
    (
        r"UnsupportedClassVersionError",
        "the Java is too old for this Hadoop",
        "Set java_home to a Java 17.",
    ),
    (
        r"(?:NoClassDefFoundError|ClassNotFoundException):? ?([\w./$]*)",
        "Hadoop's client class path is incomplete ({0} is missing)",
        "Check that `yarn classpath --glob` names all client jars.",
    ),
    (
        r"InaccessibleObjectException",
        "this Hadoop does not run on so new a Java",
        "Set java_home to a Java 11 or 17.",
    ),
    (
        r"Unrecognized VM option '?([^'\n]*)|Unrecognized option: (\S+)|Could not create the Java",
        "its Java options are not understood ({0}{1})",
        "Check driver_java_options.",
    ),
    (
        r"insufficient memory|Cannot allocate memory|OutOfMemoryError",
        "this machine has no memory left for it",
        "Free about 250 MB.",
    ),
    (
        r"UnsatisfiedLinkError|netty_tcnative",
        "its native TLS library cannot be loaded",
        "See that the directory for temporary files allows execution.",
    ),
)


def start_error(log: Path, what: str) -> ClusterError:
    """Return the error for a driver that did not start; ``what`` describes the symptom."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL))
            text = stream.read().decode(errors="replace")
    except OSError:
        text = ""
    for pattern, cause, fix in _ROWS:
        match = re.search(pattern, text)
        if match:
            said = cause.format(*(group or "" for group in match.groups())).replace(" ()", "")
            return ClusterError(f"The YARN driver did not start: {said}.", fix)
    for refusal in TABLE:
        match = refusal.pattern.search(text)
        if match:
            said = refusal.message.format(*(group or "" for group in match.groups()))
            return ClusterError(f"The YARN driver did not start: {said}", refusal.fix)
    errors = [line for line in text.splitlines() if "ERROR" in line or "Exception" in line]
    said = first_line(errors[-1]) if errors else what
    return ClusterError(f"The YARN driver did not start: {said}.", f"Its log is {log}.")
