"""Find Java and Hadoop's client jars on this machine, which the JVM of the driver needs.

``yarn classpath --glob`` takes a second or more on a real Hadoop, so its result is cached beside
the driver for each configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

OLDEST_JAVA = 8
_TIMEOUT = 30.0


def java_home(profile: Profile) -> Path:
    """Return the Java home of the driver: from the profile, ``JAVA_HOME``, or ``java`` on PATH.

    Raises
    ------
    ClusterError
        If there is none or it is too old.
    """
    named = profile.java_home or (Path(p) if (p := os.environ.get("JAVA_HOME")) else None)
    if named is None:
        found = shutil.which("java")
        if found is None:
            raise ClusterError(
                _("There is no Java on this machine: neither JAVA_HOME nor `java` on PATH."),
                _("Install one (Debian: apt install openjdk-17-jre-headless) or set java_home."),
            )
        named = Path(found).resolve().parent.parent
    if not os.access(named / "bin" / "java", os.X_OK):
        raise ClusterError(
            _("{named} is not a Java: it has no bin/java.").format(named=named),
            _("Correct java_home or JAVA_HOME."),
        )
    version = java_version(named)
    if version < OLDEST_JAVA:
        raise ClusterError(
            _("The Java at {named} is version {version}, too old for Hadoop.").format(
                named=named, version=version
            ),
            _("Install Java 11 or 17 and set java_home."),
        )
    return named


def java_version(home: Path) -> int:
    """Return the major version from the file ``release``, or else from ``java -version``."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = _run([str(home / "bin" / "java"), "-version"], "java -version")
    match = re.search(r'version "?(?:1\.)?(\d+)|JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(match.group(1) or match.group(2)) if match else OLDEST_JAVA


def yarn_command(profile: Profile, conf_dir: Path) -> Path:
    """Return the command ``yarn`` of the Hadoop client.

    Places in this order: the setting ``yarn_command``, ``HADOOP_YARN_HOME``, ``HADOOP_HOME``, PATH,
    and ``../../bin`` of the configuration directory (a tarball's ``etc/hadoop``, a minicluster).
    """
    candidates = [profile.settings.get("yarn_command", "")]
    candidates += [f"{conf_dir.resolve().parent.parent}/bin/yarn"]
    for variable in ("HADOOP_YARN_HOME", "HADOOP_HOME"):
        if os.environ.get(variable):
            candidates.append(f"{os.environ[variable]}/bin/yarn")
    candidates.append(shutil.which("yarn") or "")
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise ClusterError(
        _("There is no `yarn` command on this machine, so Hadoop's client jars cannot be found."),
        _("Put the Hadoop client's bin directory on PATH, or set HADOOP_HOME or yarn_command."),
    )


def client_classpath(command: Path, java: Path, conf_dir: Path, cache: Path) -> list[str]:
    """Return the entries of Hadoop's client class path, from ``cache`` if all of them exist.

    Raises
    ------
    ClusterError
        If the command fails or does not print a class path.
    """
    wanted = f"{command}\n"
    try:
        kept, _newline, rest = cache.read_text(encoding="utf-8").partition("\n")
        entries = rest.strip().split(":")
        if f"{kept}\n" == wanted and rest and all(os.path.exists(e) for e in entries):
            return entries
    except OSError:
        pass
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("HADOOP_OPTS", "YARN_OPTS", "CLASSPATH")
    }
    env.update(JAVA_HOME=str(java), HADOOP_CONF_DIR=str(conf_dir), YARN_CONF_DIR=str(conf_dir))
    printed = _run(
        [str(command), "classpath", "--glob"],
        f"{command} classpath --glob",
        env,
    )
    lines = [line for line in printed.splitlines() if ".jar" in line]
    entries = [e for e in (lines[-1].strip().split(":") if lines else []) if os.path.exists(e)]
    if not any(entry.endswith(".jar") for entry in entries):
        raise ClusterError(
            _("`{command} classpath --glob` names no jars.").format(command=command),
            _(
                "Run it by hand: it must print Hadoop's class path, such as "
                "/etc/hadoop:/opt/....jar."
            ),
        )
    replace_file(cache, (wanted + ":".join(entries)).encode())
    return entries


def _run(command: list[str], words: str, env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ClusterError(
            _("`{command}` cannot be run: {error}.").format(command=words, error=exc),
            _("Check java_home and PATH."),
        ) from exc
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        last = next((line for line in reversed(text.splitlines()) if line.strip()), _("no output"))
        raise ClusterError(
            _("`{command}` failed: {last}.").format(command=words, last=last.strip()[:300]),
            _("Check java_home and PATH."),
        )
    return text
