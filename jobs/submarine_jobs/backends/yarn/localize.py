"""``--localization``: files and directories brought to the container, as Apache Submarine has it.

HDFS files are taken from where they are; local and http(s) sources are copied into the job
directory first, so that a rerun needs nothing else. Directories travel as archives.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.skein_calls import skein_module
from submarine_jobs.errors import UsageError
from submarine_jobs.spec import Localization
from submarine_runtime.protocol import layout

DIRECTORY = "localization"
_TARGET = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}$")
_TAKEN = frozenset(
    ("agent.json", "secret.json", "bundle.zip", "values.zip", "runtime.zip", "program", "skein.jar")
)
_HTTP_TIMEOUT = 30.0
_MAX_DOWNLOAD = 8 << 30


def check(item: Localization, rerun: bool = False) -> str | None:
    """One sentence on what is wrong with an entry, or None; a rerun has its own copies."""
    scheme = urlsplit(item.source).scheme
    if scheme not in ("", "file", "hdfs", "http", "https"):
        return (
            f"--localization {item.source}: only local paths, hdfs://, http:// and https:// "
            "can be brought to a container."
        )
    if item.target in _TAKEN or not _TARGET.match(item.target):
        return (
            f"--localization {item.source}: the name {item.target!r} in the container must be a "
            "plain file name other than Submarine's own."
        )
    if scheme in ("", "file") and not rerun and not _local(item).exists():
        return f"--localization {item.source}: there is no such file on this machine."
    return None


def localized_files(submission: Submission) -> dict[str, Any]:
    """Target -> ``skein.File`` for every entry, copying to the job directory what must be."""
    return {item.target: _file(submission, item) for item in submission.spec.localization}


def _file(submission: Submission, item: Localization) -> Any:
    skein = skein_module()

    scheme = urlsplit(item.source).scheme
    if scheme == "hdfs":
        return skein.File(source=item.source, type="file", visibility="application")
    storage = submission.storage
    with tempfile.TemporaryDirectory(prefix="submarine-localize-") as scratch:
        earlier = _from_earlier(submission, item, Path(scratch))
        local, kind = earlier or _gather(item, Path(scratch), scheme)
        path = f"{submission.job_dir}/{DIRECTORY}/{item.target}"
        path += ".zip" if kind == "archive" else ""
        found = storage.stat(path)
        if found is None or found.size != local.stat().st_size:
            storage.upload(local, path)
    return skein.File(source=storage.url(path), type=kind, visibility="application")


def _from_earlier(
    submission: Submission, item: Localization, scratch: Path
) -> tuple[Path, str] | None:
    """The copy that the job which is run again made; None if this is no rerun or it has none."""
    of = submission.spec.rerun_of
    if not of or not layout.is_job_id(of):
        return None
    root = submission.job_dir.rsplit("/", 2)[0]
    kept = f"{layout.job_directory(root, of)}/{DIRECTORY}/{item.target}"
    for path, kind in ((kept, "file"), (f"{kept}.zip", "archive")):
        if submission.storage.stat(path) is not None:
            submission.storage.download(path, scratch / "kept")
            return scratch / "kept", kind
    return None


def _gather(item: Localization, scratch: Path, scheme: str) -> tuple[Path, str]:
    if scheme in ("http", "https"):
        return _download(item.source, scratch / "file"), "file"
    source = _local(item)
    if source.is_dir():
        return Path(shutil.make_archive(str(scratch / "directory"), "zip", source)), "archive"
    return source, "file"


def _local(item: Localization) -> Path:
    return Path(urlsplit(item.source).path if item.source.startswith("file:") else item.source)


def _download(url: str, target: Path) -> Path:
    import urllib.error
    import urllib.request

    try:
        with (
            urllib.request.urlopen(url, timeout=_HTTP_TIMEOUT) as reply,  # noqa: S310 - checked
            target.open("wb") as stream,
        ):
            left = _MAX_DOWNLOAD
            while piece := reply.read(1 << 20):
                left -= len(piece)
                if left < 0:
                    raise UsageError(f"{url} is larger than {_MAX_DOWNLOAD >> 30} GB.")
                stream.write(piece)
    except (OSError, urllib.error.URLError) as exc:
        name = PurePosixPath(urlsplit(url).path).name or url
        raise UsageError(
            f"--localization {url}: {name} cannot be downloaded: {exc}.", "Check the address."
        ) from exc
    return target
