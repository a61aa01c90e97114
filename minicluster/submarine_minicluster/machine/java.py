"""Find a Java runtime that Hadoop's daemons support. Installs nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.translation import _

MINIMUM = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home directory and major version."""

    home: Path
    major: int

    @property
    def binary(self) -> Path:
        """Path of the `java` program."""
        return self.home / "bin" / "java"

    @property
    def has_modules(self) -> bool:
        """Whether it is Java 9 or newer, which has options for modules."""
        return (self.home / "lib" / "modules").exists()


def _probe(home: Path) -> Java | None:
    """Return the runtime under `home`, or None if there is no working one."""
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    try:
        done = subprocess.run(
            [str(binary), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stderr + done.stdout)
    return Java(home, int(found.group(1))) if found else None


def java_at(home: Path, *, maximum: int | None = None) -> Java:
    """Return the Java in a directory, of any version up to `maximum`.

    Raises
    ------
    MiniclusterError
        If there is none, or it is newer.
    """
    java = _probe(home)
    if java is None:
        raise MiniclusterError(
            _("{home} has no Java that runs: name a Java home, which has bin/java.").format(
                home=home
            )
        )
    if maximum is not None and java.major > maximum:
        raise MiniclusterError(
            _(
                "Java {major} in {home} is too new for this release of HDFS: name the home of a "
                "Java {maximum}."
            ).format(major=java.major, home=home, maximum=maximum)
        )
    return java


def _candidates() -> list[Path]:
    """Return Java homes in the order in which they are tried."""
    homes: list[Path] = []
    if named := os.environ.get("JAVA_HOME"):
        homes.append(Path(named))
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parent.parent)
    homes += sorted(Path("/usr/lib/jvm").glob("*"), reverse=True)
    return list(dict.fromkeys(home.resolve() for home in homes))


def find_java() -> Java:
    """Find Java 17 or newer in ``JAVA_HOME``, as ``java`` on PATH, or under ``/usr/lib/jvm``.

    Raises
    ------
    MiniclusterError
        If there is none. The message names the required version and a package to install.
    """
    old: Java | None = None
    for home in _candidates():
        java = _probe(home)
        if java and java.major >= MINIMUM:
            return java
        old = old or java
    fix = _(
        "install a JDK {minimum} or newer (Debian: apt-get install openjdk-17-jdk-headless)"
    ).format(minimum=MINIMUM)
    if old:
        raise MiniclusterError(
            _("Java {major} in {home} is too old for Hadoop: {fix}, or set JAVA_HOME.").format(
                major=old.major, home=old.home, fix=fix
            )
        )
    raise MiniclusterError(
        _(
            "No Java was found in JAVA_HOME, on PATH or in /usr/lib/jvm: {fix}, or set JAVA_HOME."
        ).format(fix=fix)
    )
