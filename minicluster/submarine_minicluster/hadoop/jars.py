"""Hadoop's jars, downloaded once for each version by Maven from `pom.xml` and then cached."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

import platformdirs

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.machine import MINIMUM, Java, file_lock
from submarine_minicluster.settings import HDFS_VERSIONS
from submarine_runtime.translation import _

Progress = Callable[[str], None]

_DOWNLOAD_TIMEOUT = 1800.0
_NEEDED_BYTES = 600 * 1024 * 1024
_KDC_BYTES = 50 * 1024 * 1024
# Hadoop has two bindings of slf4j, which then prints a warning at each start; 3.1 has one.
_ARTIFACTS = "-DexcludeArtifactIds=", "slf4j-log4j12"
_ONE_BINDING = ("3.1.4",)
# Hadoop 2 has two releases of asm, and its web servers fail with the newer one.
_GROUPS = "-DexcludeGroupIds=", "org.ow2.asm"
_SOURCES = ("Kdc.java", "SecureIOUtils.java")
_COMPILE_TIMEOUT = 120.0


def cache_dir() -> Path:
    """Return the cache directory of this project."""
    return platformdirs.user_cache_path("jupyter-submarine")


def _resource(*names: str) -> Traversable:
    return files("submarine_minicluster").joinpath(*names)


def lib_dir(version: str) -> Path:
    """Return the directory of the jars of a Hadoop version.

    The name contains a digest of the request to Maven, so that a release of this package with
    another list of artifacts does not use the jars of an earlier one.
    """
    pom, excluded = _request(version)
    names = "".join(name for _option, name in excluded)
    return _versioned(version, _resource(pom).read_bytes() + names.encode()) / "lib"


def _request(version: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the POM of a release of Hadoop or HDFS, and Maven's options with what is excluded."""
    if version in HDFS_VERSIONS:
        return "hdfs_pom.xml", [_ARTIFACTS, _GROUPS]
    return "pom.xml", [] if version in _ONE_BINDING else [_ARTIFACTS]


def kdc_dir(version: str) -> Path:
    """Return the directory with the jars of the KDC in `lib` and our classes in `classes`."""
    parts = [_resource("kdc_pom.xml"), *(_resource("java", name) for name in _SOURCES)]
    return _versioned(f"kdc-{version}", b"".join(part.read_bytes() for part in parts))


def _versioned(name: str, request: bytes) -> Path:
    digest = hashlib.sha256(request).hexdigest()[:8]
    return cache_dir() / "hadoop" / f"{name}-{digest}"


def check_disk(where: Path, needed: int) -> None:
    """Raise an error if the file system of `where` has fewer than `needed` bytes free."""
    where.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(where).free
    if free < needed:
        raise MiniclusterError(
            _(
                "{where} has {free} MB free and the minicluster needs {needed} MB there. Free "
                "some space."
            ).format(where=where, free=free >> 20, needed=needed >> 20)
        )


def ensure_jars(version: str, java: Java, progress: Progress) -> Path:
    """Return the directory of Hadoop's jars, after downloading them if necessary.

    Several processes may call this at the same time: one downloads, the others wait.

    Parameters
    ----------
    version
        Hadoop's version, or that of an older HDFS.
    java
        Java that runs Maven.
    progress
        Called with a line about each step.

    Raises
    ------
    MiniclusterError
        If Maven is not installed or cannot resolve the version, or the disk is full.
    """
    lib = lib_dir(version)
    title = _("Hadoop {version}").format(version=version)

    def fetch(draft: Path) -> None:
        progress(
            _("downloading Hadoop {version} with Maven (about 100 MB, the first time only)").format(
                version=version
            )
        )
        pom, excluded = _request(version)
        options = (f"-Dhadoop.version={version}", *map("".join, excluded))
        _copy_jars(title, pom, draft, java, options, progress)

    _make_once(lib, _beside(lib.parent), title, _NEEDED_BYTES, fetch, progress)
    return lib


def ensure_kdc(version: str, java: Java, progress: Progress) -> Path:
    """Return `kdc_dir`, after downloading the jars and compiling the classes if necessary.

    Parameters
    ----------
    version, java, progress
        As for `ensure_jars`, which must have succeeded.

    Raises
    ------
    MiniclusterError
        If Maven fails, or `java` has no compiler.
    """
    place = kdc_dir(version)
    title = _("the Kerberos KDC")

    def fetch(draft: Path) -> None:
        compiler = java.home / "bin" / "javac"
        if not compiler.exists():
            raise MiniclusterError(
                _(
                    "Kerberos requires a Java compiler, and {compiler} does not exist. Install a "
                    "JDK (Debian: apt-get install openjdk-17-jdk-headless)."
                ).format(compiler=compiler)
            )
        progress(_("downloading the Kerberos KDC with Maven (4 MB, the first time only)"))
        draft.mkdir()
        options = (f"-Dhadoop.version={version}",)
        _copy_jars(title, "kdc_pom.xml", draft / "lib", java, options, progress)
        _compile(compiler, [draft / "lib", lib_dir(version)], draft / "classes")

    _make_once(place, _beside(place), title, _KDC_BYTES, fetch, progress)
    return place


def _make_once(
    place: Path,
    lock: Path,
    title: str,
    needed: int,
    make: Callable[[Path], None],
    progress: Progress,
) -> None:
    """Make a directory of the cache in one process; other processes wait for it."""
    if place.is_dir():
        return
    with file_lock(
        lock,
        timeout=_DOWNLOAD_TIMEOUT,
        on_wait=lambda: progress(
            _("waiting for another process to download {title}").format(title=title)
        ),
    ):
        if place.is_dir():
            return
        check_disk(place.parent, needed)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="fetch-") as scratch:
            draft = Path(scratch) / place.name
            make(draft)
            draft.rename(place)


def _beside(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _copy_jars(
    title: str, pom: str, target: Path, java: Java, options: Sequence[str], progress: Progress
) -> None:
    # cost: tenacity, which imports tornado (1 MB); usually the jars are present.
    from submarine_minicluster.hadoop.maven import copy_jars

    with as_file(_resource(pom)) as path:
        copy_jars(title, path, target, java, options, progress)


def _compile(compiler: Path, libraries: Sequence[Path], target: Path) -> None:
    with ExitStack() as stack:
        sources = [stack.enter_context(as_file(_resource("java", name))) for name in _SOURCES]
        class_path = ":".join(f"{library}/*" for library in libraries)
        words = [str(compiler), "--release", str(MINIMUM), "-proc:none", "-cp", class_path]
        done = subprocess.run(
            [*words, "-d", str(target), *map(str, sources)],
            capture_output=True,
            text=True,
            timeout=_COMPILE_TIMEOUT,
            check=False,
        )
    if done.returncode:
        raise MiniclusterError(
            _("{compiler} failed: {output}").format(compiler=compiler, output=done.stderr[:600])
        )
