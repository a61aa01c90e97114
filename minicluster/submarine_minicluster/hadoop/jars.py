"""Hadoop's jars, downloaded once for each version by Maven from `pom.xml` and then cached."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

import platformdirs

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.machine import Java, file_lock
from submarine_runtime.translation import _

Progress = Callable[[str], None]

_DOWNLOAD_TIMEOUT = 1800.0
_NEEDED_BYTES = 600 * 1024 * 1024
# Hadoop 3.3 has two bindings of slf4j, which then prints a warning at each start.
_EXCLUDED = "slf4j-log4j12"


def cache_dir() -> Path:
    """Return the cache directory of this project."""
    return platformdirs.user_cache_path("jupyter-submarine")


def _pom() -> Traversable:
    return files("submarine_minicluster") / "pom.xml"


def lib_dir(version: str) -> Path:
    """Return the directory of the jars of a Hadoop version.

    The name contains a digest of the request to Maven, so that a release of this package with
    another list of artifacts does not use the jars of an earlier one.
    """
    request = _pom().read_bytes() + _EXCLUDED.encode()
    digest = hashlib.sha256(request).hexdigest()[:8]
    return cache_dir() / "hadoop" / f"{version}-{digest}" / "lib"


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
        Hadoop's version.
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
    if lib.is_dir():
        return lib
    with file_lock(
        lib.parent.with_name(f"{lib.parent.name}.lock"),
        timeout=_DOWNLOAD_TIMEOUT,
        on_wait=lambda: progress(
            _("waiting for another process to download Hadoop {version}").format(version=version)
        ),
    ):
        if lib.is_dir():
            return lib
        check_disk(lib.parent, _NEEDED_BYTES)
        progress(
            _("downloading Hadoop {version} with Maven (about 100 MB, the first time only)").format(
                version=version
            )
        )
        # cost: tenacity, which imports tornado (1 MB); usually the jars are present.
        from submarine_minicluster.hadoop.maven import copy_jars

        options = (f"-Dhadoop.version={version}", f"-DexcludeArtifactIds={_EXCLUDED}")
        with (
            tempfile.TemporaryDirectory(dir=lib.parent, prefix="fetch-") as scratch,
            as_file(_pom()) as pom,
        ):
            draft = Path(scratch) / "lib"
            copy_jars(
                _("Hadoop {version}").format(version=version), pom, draft, java, options, progress
            )
            draft.rename(lib)
    return lib
