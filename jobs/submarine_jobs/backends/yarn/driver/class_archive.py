"""A class archive (AppCDS) for skein's master; it halves the CPU time before the program starts.

It is built once for each set of Hadoop jars and Java, in the background after a submission, and
localized from the cache of the job root. If Java or jars of a node differ, the JVM ignores the
archive. The JVM compares the paths, sizes and times of all jars, and most of the gain comes from
Hadoop's classes, so the archive brings its class path along. A node without these paths, or with
another Java, which may be too old for these jars, starts the master as without an archive. On a
shared cluster the archive is used with ``am_cds = on``.

``master.classes.gz`` names the classes that a master of Hadoop 3.5 loads, as
``-XX:DumpLoadedClassList`` wrote them; names that another version lacks are skipped.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from submarine_jobs import concurrency
from submarine_jobs.backends.yarn.driver.master_jar import CHANGES, make_master_jar
from submarine_jobs.backends.yarn.driver.skein_calls import skein_jar
from submarine_jobs.errors import SubmarineError
from submarine_jobs.storage import Storage
from submarine_runtime.yarn import GPU

#: Name of the unpacked archive in the master's working directory.
ARCHIVE_DIRECTORY = "am"
_OPTION = f"@{ARCHIVE_DIRECTORY}/args"
_BUILD_SECONDS = 180
#: Jars whose paths identify an installation of Hadoop and its version.
_IDENTIFYING = re.compile(
    r"/hadoop-(?:client-(?:api|runtime)|common|yarn-(?:api|client|common))-\d[^/]*(?<!-tests)\.jar$"
)
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="([0-9A-Za-z._+-]+)"', re.MULTILINE)
#: Paths that a shell reads as they are.
_PLAIN = re.compile(r"[A-Za-z0-9/._+-]+")


class MasterArchive:
    """The archive for one Java and one class path.

    Parameters
    ----------
    storage, directory
        The cache of the job root.
    java
        The JDK that builds the archive; nodes need the same version to use it.
    entries
        Hadoop's client class path, jars and configuration directories.
    gpu_resource
        Name of GPUs as a resource.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        java: Path,
        entries: Sequence[str],
        gpu_resource: str = GPU,
    ) -> None:
        self._gpu_resource = gpu_resource
        self._storage = storage
        self._java = java
        self._jars = [e for e in entries if e.endswith(".jar")]
        self._conf = [e for e in entries if not e.endswith(".jar")]
        self._path = f"{directory}/master-{self._digest()}.tar"
        self._there = False
        self._building: threading.Thread | None = None

    @property
    def option(self) -> str:
        """The option of the master's JVM, as a shell text.

        YARN's launch script expands it on the node: it is empty where the jars have other paths, or
        the Java has another version.
        """
        jars = [jar for jar in self._jars if _IDENTIFYING.search(jar)] or self._jars[:4]
        version = self._java_version()
        if not jars or not version or not all(_PLAIN.fullmatch(jar) for jar in jars):
            return ""
        # Without quotation marks, which YARN puts around the value.
        same_java = f"grep -qs JAVA_VERSION=.{version}. $JAVA_HOME/release"
        return f"$(ls {' '.join(jars)} >/dev/null 2>&1 && {same_java} && echo {_OPTION})"

    def _java_version(self) -> str:
        """Return the version in the file that each JDK has since Java 9; empty if it has none."""
        with contextlib.suppress(OSError):
            found = _JAVA_VERSION.search((self._java / "release").read_text("utf-8", "replace"))
            return found.group(1) if found else ""
        return ""

    def path(self) -> str | None:
        """Return the path in the storage, or None if there is no archive."""
        if not self._there:
            try:
                self._there = self._storage.stat(self._path) is not None
            except SubmarineError:
                return None
        return self._path if self._there else None

    def forget(self) -> None:
        """Check the storage again at the next call: the cache may have been emptied."""
        self._there = False

    def build_later(self, scratch: Path) -> None:
        """Build and upload in the background, unless this is done or in progress."""
        if self._there or (self._building is not None and self._building.is_alive()):
            return

        def work() -> None:
            with contextlib.suppress(OSError, subprocess.SubprocessError, SubmarineError):
                self.build(scratch)

        self._building = threading.Thread(target=work, daemon=True, name="submarine-cds")
        self._building.start()

    def wait(self) -> None:
        """Wait for a build that ``build_later`` has started in this process."""
        if self._building is not None:
            self._building.join(_BUILD_SECONDS)

    def build(self, scratch: Path) -> None:
        """Build and upload now; do nothing if another process is building.

        Raises
        ------
        OSError, subprocess.SubprocessError, SubmarineError
            If there is no archive afterwards.
        """
        try:
            lock = concurrency.file_lock(scratch / "cds.lock").acquire(timeout=0)
        except TimeoutError:
            return
        with lock:
            if self.path() is not None:
                return
            with tempfile.TemporaryDirectory(prefix="cds-", dir=scratch) as name:
                tar = self._make(Path(name))
                self._storage.upload(tar, self._path)
        self._there = True

    def _digest(self) -> str:
        digest = hashlib.sha256(CHANGES + self._gpu_resource.encode())
        for jar in [skein_jar(), *self._jars]:
            info = os.stat(jar)
            digest.update(f"{jar}\0{info.st_size}\0{info.st_mtime_ns}\n".encode())
        release = self._java / "release"
        digest.update(release.read_bytes() if release.exists() else str(self._java).encode())
        digest.update("\0".join(self._conf).encode())
        return digest.hexdigest()[:16]

    def _make(self, scratch: Path) -> Path:
        """The tar: skein's jar, the archive, the JVM's arguments; times are kept when unpacked."""
        inside = scratch / ARCHIVE_DIRECTORY
        inside.mkdir()
        (inside / "skein.jar").write_bytes(make_master_jar(skein_jar(), self._gpu_resource))
        os.utime(inside / "skein.jar", (1_600_000_000, 1_600_000_000))
        names = files("submarine_jobs.backends.yarn").joinpath("master.classes.gz").read_bytes()
        (scratch / "classes").write_bytes(gzip.decompress(names))
        archived = ":".join([f"{ARCHIVE_DIRECTORY}/skein.jar", *self._jars])
        _run(
            [
                *(["nice", "-n", "19"] if shutil.which("nice") else []),
                str(self._java / "bin" / "java"),
                "-Xshare:dump",
                f"-XX:SharedClassListFile={scratch / 'classes'}",
                f"-XX:SharedArchiveFile={inside / 'master.jsa'}",
                "-cp",
                archived,
            ],
            scratch,
        )
        # Directories may not be archived and come last; the jar that quickens the heartbeat must
        # come before them and need not exist.
        whole = ":".join([archived, "heartbeat.jar", *self._conf])
        arguments = f'-cp "{whole}"\n-XX:SharedArchiveFile={ARCHIVE_DIRECTORY}/master.jsa\n'
        (inside / "args").write_text(arguments, encoding="utf-8")
        tar = scratch / "master.tar"
        with tarfile.open(tar, "w") as archive:
            for path in sorted(inside.iterdir()):
                archive.add(path, path.name)
        return tar


def _run(command: Sequence[str], directory: Path) -> None:
    """Run a command, and stop it when this process ends: the result could not be uploaded."""
    null = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=directory, stdin=null, stdout=null, stderr=null) as process:
        atexit.register(process.kill)
        try:
            code = process.wait(_BUILD_SECONDS)
        finally:
            process.kill()
            atexit.unregister(process.kill)
    if code:
        raise subprocess.CalledProcessError(code, command)
