"""Find out from the end of its log why a driver did not start."""

from __future__ import annotations

import re
from pathlib import Path

from submarine_jobs.backends.yarn.driver.refusals import TABLE, first_line
from submarine_jobs.errors import ClusterError
from submarine_runtime.translation import _, gettext_noop

_TAIL = 32 << 10
_ROWS: tuple[tuple[str, str, str], ...] = (
    (
        r"UnsupportedClassVersionError",
        gettext_noop("the Java is too old for this Hadoop"),
        gettext_noop("Set java_home to a Java 17."),
    ),
    (
        r"(?:NoClassDefFoundError|ClassNotFoundException):? ?([\w./$]*)",
        gettext_noop("Hadoop's client class path is incomplete ({0} is missing)"),
        gettext_noop("Check that `yarn classpath --glob` names all client jars."),
    ),
    (
        r"InaccessibleObjectException",
        gettext_noop("this Hadoop does not run on so new a Java"),
        gettext_noop("Set java_home to a Java 11 or 17."),
    ),
    (
        r"Unrecognized VM option '?([^'\n]*)|Unrecognized option: (\S+)|Could not create the Java",
        gettext_noop("its Java options are not understood ({0}{1})"),
        gettext_noop("Check driver_java_options."),
    ),
    (
        r"insufficient memory|Cannot allocate memory|OutOfMemoryError",
        gettext_noop("this machine has no memory left for it"),
        gettext_noop("Free about 250 MB."),
    ),
    (
        r"UnsatisfiedLinkError|netty_tcnative",
        gettext_noop("its native TLS library cannot be loaded"),
        gettext_noop("See that the directory for temporary files allows execution."),
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
            said = _(cause).format(*(group or "" for group in match.groups())).replace(" ()", "")
            return ClusterError(
                _("The YARN driver did not start: {reason}.").format(reason=said), _(fix)
            )
    for refusal in TABLE:
        match = refusal.pattern.search(text)
        if match:
            said = _(refusal.message).format(*(group or "" for group in match.groups()))
            return ClusterError(
                _("The YARN driver did not start: {reason}").format(reason=said), _(refusal.fix)
            )
    errors = [line for line in text.splitlines() if "ERROR" in line or "Exception" in line]
    said = first_line(errors[-1]) if errors else what
    return ClusterError(
        _("The YARN driver did not start: {reason}.").format(reason=said),
        _("Its log is {log}.").format(log=log),
    )
