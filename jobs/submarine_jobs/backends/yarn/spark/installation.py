"""Find Spark and its Java on this machine, which only the submission needs."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.backends.yarn.driver import java_home, java_version
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.extras import install_command
from submarine_jobs.model import Profile
from submarine_runtime.translation import _

_CORE = re.compile(r"spark-core_[\d.]+-(\d+(?:\.\d+)+[\w.-]*)\.jar\Z")


@dataclass(frozen=True)
class SparkInstallation:
    """A directory with ``bin/spark-submit`` and ``jars``, and the Java for it."""

    home: Path
    java: Path
    version: str

    @property
    def jars(self) -> list[Path]:
        """The jars, by name."""
        return sorted((self.home / "jars").glob("*.jar"))

    @property
    def archive_name(self) -> str:
        """Name of the archive of the jars in the cache of a job root."""
        words = [f"{jar.name} {jar.stat().st_size}" for jar in self.jars]
        digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
        return f"spark-{self.version}-{digest[:16]}.zip"


def find_spark(profile: Profile) -> SparkInstallation:
    """Return the Spark of ``SPARK_HOME``, else of the package pyspark of this Python.

    Raises
    ------
    UsageError
        If there is no Spark, or its Java is too old.
    """
    named = os.environ.get("SPARK_HOME")
    home = Path(named) if named else _package()
    if home is None:
        raise UsageError(
            _("--type spark needs Spark on this machine: pyspark is not installed."),
            _("Type {command}, or set SPARK_HOME.").format(command=install_command("spark")),
        )
    version = next((m[1] for jar in (home / "jars").glob("*") if (m := _CORE.match(jar.name))), "")
    if not version or not os.access(home / "bin" / "spark-submit", os.X_OK):
        raise UsageError(
            _("{home} is not a Spark: it has no bin/spark-submit or no jars.").format(home=home),
            _("Correct SPARK_HOME, or leave it out to use the package pyspark."),
        )
    try:
        java = java_home(profile)
    except ClusterError as error:
        raise UsageError(error.message, error.fix) from error
    needed = 17 if int(version.partition(".")[0]) >= 4 else 8
    found = java_version(java)
    if found < needed:
        raise UsageError(
            _("Spark {version} needs Java {needed}, and {java} is version {found}.").format(
                version=version, needed=needed, java=java, found=found
            ),
            _("Install it and set java_home or JAVA_HOME."),
        )
    return SparkInstallation(home, java, version)


def _package() -> Path | None:
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin else None
