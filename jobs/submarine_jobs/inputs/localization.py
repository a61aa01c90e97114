"""Copy the sources of ``--localization``, ``--file`` and ``--archive`` to the job directory.

Local and http(s) sources are copied before the intent is written, so that a rerun has them;
directories are copied as archives. HDFS sources are not copied. Backends localize the copies.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.access import JobDirectory
from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.model import JobSpec, Localization
from submarine_jobs.storage import Storage
from submarine_runtime.network import check_complete
from submarine_runtime.protocol import CHECKSUMMED, layout
from submarine_runtime.translation import _

DIRECTORY = "localization"
#: Ends the name of a directory's archive in the job directory.
ARCHIVE = ".directory.zip"
#: Suffixes that YARN and this machine can unpack; a copy of ``--archive`` keeps its suffix.
UNPACKED = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
_SLASHES = re.compile("(?<!:)/+")
_HTTP_TIMEOUT = 30.0
_MAX_DOWNLOAD = 8 << 30
#: Maximum number of directories of a source that are checked before the submission.
_MAX_CHECKED = 10_000


def localized_entries(spec: JobSpec) -> tuple[Localization, ...]:
    """Return the entries to localize: files and directories, then archives."""
    return (*spec.localization, *spec.archives)


def localization_errors(spec: JobSpec) -> list[str]:
    """Return one sentence for each invalid entry."""
    rerun = bool(spec.rerun_of)
    found = [check(item, rerun) for item in localized_entries(spec)]
    found += [
        _("--archive {source}: it does not end in {suffixes}, so it cannot be unpacked.").format(
            source=item.source, suffixes=", ".join(UNPACKED)
        )
        for item in spec.archives
        if not item.source.endswith(UNPACKED)
    ]
    return [text for text in found if text]


def check(item: Localization, rerun: bool = False) -> str | None:
    """Return the error of an entry, or None; a rerun uses copies."""
    scheme = urlsplit(item.source).scheme
    if scheme not in ("", "file", "hdfs", "http", "https"):
        return _(
            "--localization {source}: only local paths, hdfs://, http:// and https:// can be "
            "localized in a container."
        ).format(source=item.source)
    if not _is_inside(item.target):
        return _(
            "--localization {source}: the target {target!r} is not a name below the working "
            "directory."
        ).format(source=item.source, target=item.target)
    if scheme in ("", "file") and not rerun:
        return _unreadable(item)
    return None


def _unreadable(item: Localization) -> str | None:
    """Return a sentence on a source of this machine that is missing or not readable."""
    source = _local(item)
    if not source.exists():
        return _("--localization {source}: there is no such file on this machine.").format(
            source=item.source
        )
    paths = [source]
    if source.is_dir():
        found = islice(os.walk(source), _MAX_CHECKED)
        paths += [Path(top, name) for top, _folders, names in found for name in names]
    for path in paths:
        # Special files and dangling links in a directory are handled when it is archived.
        if (path.is_file() or path.is_dir()) and not os.access(path, os.R_OK):
            return _(
                "--localization {source}: {path} cannot be read. Make it readable for you."
            ).format(source=item.source, path=path)
    return None


def check_sources(spec: JobSpec, storage: Storage) -> None:
    """Refuse sources that are missing on HDFS or on a web server.

    A rerun has copies of the sources that are not on HDFS. Other clusters are not checked.

    Raises
    ------
    UsageError
        If a source does not exist.
    StorageError
        If the file system does not answer.
    """
    for item in localized_entries(spec):
        scheme = urlsplit(item.source).scheme
        path = storage.path_of(item.source) if is_on_hdfs(item) else None
        if path is not None and storage.stat(path) is None:
            raise UsageError(
                _("The file {url} that the job needs does not exist.").format(
                    url=storage.url(path)
                ),
                _("Check the sources of --localization."),
            )
        if scheme in ("http", "https") and not spec.rerun_of:
            _check_download(item.source)


def is_on_hdfs(item: Localization) -> bool:
    """Return whether the source is on HDFS and not copied."""
    return urlsplit(item.source).scheme == "hdfs"


def copy_sources(directory: JobDirectory, spec: JobSpec) -> None:
    """Copy all entries that are not on HDFS to the job directory.

    Raises
    ------
    UsageError
        If a source cannot be read or downloaded.
    StorageError
        If the job directory's file system fails.
    """
    earlier = _directory_of(directory.path, spec.rerun_of)
    for item in localized_entries(spec):
        if is_on_hdfs(item):
            continue
        unpacked = item in spec.archives
        with tempfile.TemporaryDirectory(prefix="submarine-localize-") as scratch:
            local, suffix = _from_earlier(
                directory.storage, earlier, item, Path(scratch)
            ) or _gather(item, Path(scratch), unpacked)
            kept = _kept(directory.path, item) + suffix
            directory.storage.upload(local, kept, mode=directory.mode)


def find_copy(storage: Storage, job_dir: str, item: Localization) -> tuple[str, bool]:
    """Return the path of an entry's copy in the job directory, and whether it is unpacked.

    Raises
    ------
    StorageError
        If it does not exist.
    """
    path = _kept(job_dir, item)
    for suffix in dict.fromkeys(("", ARCHIVE, _ending(item))):
        if storage.stat(path + suffix) is not None:
            return path + suffix, bool(suffix)
    raise StorageError(
        _("The copy of {source} is missing in {url}.").format(
            source=item.source, url=storage.url(job_dir)
        ),
        _("Submit the job again."),
    )


def container_names(spec: JobSpec) -> list[tuple[str, Localization]]:
    """Return each entry with its plain name in the container's directory.

    Entries with one source on HDFS share a name: YARN localizes a source once for a container and
    links it under one of several names only. The agent removes the checksum files that the
    NodeManager adds to directories whose name starts with ``CHECKSUMMED``.
    """
    named: list[tuple[str, Localization]] = []
    shared: dict[tuple[str, bool], str] = {}
    for number, item in enumerate(localized_entries(spec)):
        if not is_on_hdfs(item):
            named.append((f"localized-{number}", item))
            continue
        unpacked = item in spec.archives
        prefix = "localized-" if unpacked else CHECKSUMMED
        key = (_SLASHES.sub("/", item.source).rstrip("/"), unpacked)
        named.append((shared.setdefault(key, f"{prefix}{number}"), item))
    return named


def _is_inside(target: str) -> bool:
    """Return whether a target, which may come from an untrusted spec, is below the directory."""
    parts = target.split("/")
    return target.isprintable() and not any(part in ("", ".", "..") for part in parts)


def _kept(job_dir: str, item: Localization) -> str:
    return f"{job_dir}/{DIRECTORY}/{item.target}"


def _directory_of(job_dir: str, of: str | None) -> str | None:
    if not of or not layout.is_job_id(of):
        return None
    return layout.job_directory(job_dir.rsplit("/", 2)[0], of)


def _from_earlier(
    storage: Storage, earlier: str | None, item: Localization, scratch: Path
) -> tuple[Path, str] | None:
    """Return the copy of the original job of a rerun; None if there is none."""
    if earlier is None:
        return None
    try:
        path, archived = find_copy(storage, earlier, item)
    except StorageError:
        return None
    storage.download(path, scratch / "kept")
    return scratch / "kept", path[len(_kept(earlier, item)) :] if archived else ""


def _ending(item: Localization) -> str:
    """Return the suffix of a copy of an archive."""
    found = [ending for ending in UNPACKED if item.source.endswith(ending)]
    return f".archive{found[0]}" if found else ""


def _gather(item: Localization, scratch: Path, unpacked: bool) -> tuple[Path, str]:
    suffix = _ending(item) if unpacked else ""
    if urlsplit(item.source).scheme in ("http", "https"):
        return _download(item.source, scratch / "file"), suffix
    source = _local(item)
    try:
        if source.is_dir():
            return Path(shutil.make_archive(str(scratch / "directory"), "zip", source)), ARCHIVE
        with source.open("rb"):
            return source, suffix
    except (OSError, ValueError) as exc:
        raise UsageError(
            _("--localization {source}: it cannot be read: {error}.").format(
                source=item.source, error=exc
            ),
            _("Make it readable for you."),
        ) from exc


def _local(item: Localization) -> Path:
    return Path(urlsplit(item.source).path if item.source.startswith("file:") else item.source)


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    """Open a URL; raise UsageError if that, or reading the response, fails."""
    # cost: http and urllib.request (15 ms), which only web sources need.
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=_HTTP_TIMEOUT) as reply:  # noqa: S310 - checked
            yield reply
    except (OSError, http.client.HTTPException) as exc:
        raise UsageError(
            _("--localization {url}: it cannot be downloaded: {error}.").format(url=url, error=exc),
            _("Check the address."),
        ) from exc


def _check_download(url: str) -> None:
    with _opened(url):
        pass


def _download(url: str, target: Path) -> Path:
    with _opened(url) as reply, target.open("wb") as stream:
        left = _MAX_DOWNLOAD
        while piece := reply.read(1 << 20):
            left -= len(piece)
            if left < 0:
                raise UsageError(
                    _("{url} is larger than {limit} GB.").format(
                        url=url, limit=_MAX_DOWNLOAD >> 30
                    ),
                    _("Put it on HDFS."),
                )
            stream.write(piece)
        check_complete(reply)
    return target
