"""Files of other stores (s3, gs, http ...) through the installed fsspec implementation."""

from __future__ import annotations

import importlib
import importlib.util
from datetime import datetime, timezone
from typing import Any, BinaryIO, cast

from submarine_data.file_systems import FileEntry
from submarine_data.remote.configuration import split_uri
from submarine_data.remote.errors import MissingFileError, RefusedAccessError, RemoteError
from submarine_data.remote.patterns import has_pattern
from submarine_runtime.translation import _

#: Scheme -> package with its implementation.
_PACKAGES = {
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "gcs": "gcsfs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "http": "aiohttp",
    "https": "aiohttp",
    "oss": "ossfs",
    "s3": "s3fs",
    "s3a": "s3fs",
    "sftp": "paramiko",
    "ssh": "paramiko",
}
_TIME_KEYS = ("mtime", "modification_time", "LastModified", "last_modified", "updated", "modified")


class FsspecFileSystem:
    """Files of any scheme that fsspec knows, with the credentials that its implementation finds."""

    slow_jumps = True

    def find(self, uri: str) -> list[FileEntry]:
        """See ``FileSystem.find``."""
        system, path = located(uri)
        scheme = split_uri(uri)[0]
        try:
            found = self._found(system, path)
        except (OSError, ValueError) as exc:
            raise _error(uri, exc) from exc
        if not found:
            raise MissingFileError(_("There is no file {uri}.").format(uri=uri))
        entries = [
            FileEntry(_uri_of(system, scheme, name), int(info.get("size") or 0), _modified(info))
            for name, info in found.items()
            if info.get("type") != "directory"
        ]
        return sorted(entries)

    @staticmethod
    def _found(system: Any, path: str) -> dict[str, Any]:
        if has_pattern(path) and not system.exists(path):
            matches = system.glob(path, detail=True)
            files = {name: info for name, info in matches.items() if info["type"] != "directory"}
            for name, info in matches.items():
                if info["type"] == "directory":
                    files.update(system.find(name, detail=True))
            return files
        info = system.info(path)
        if info["type"] != "directory":
            return {info["name"]: info}
        return dict(system.find(path, detail=True))

    def open(self, uri: str) -> BinaryIO:
        """See ``FileSystem.open``."""
        system, path = located(uri)
        try:
            return cast("BinaryIO", system.open(path, "rb"))
        except (OSError, ValueError) as exc:
            raise _error(uri, exc) from exc


def located(uri: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URI, and the path in it.

    Raises
    ------
    RemoteError
        If the scheme is unknown, or its package is missing.
    """
    scheme = split_uri(uri)[0]
    package = _PACKAGES.get(scheme, "")
    if importlib.util.find_spec("fsspec") is None:
        names = ", ".join(filter(None, ("fsspec", package)))
        raise RemoteError(_missing(uri, scheme, names))
    fsspec = importlib.import_module("fsspec")
    try:
        system, path = fsspec.core.url_to_fs(uri)
    except ImportError as exc:
        raise RemoteError(_missing(uri, scheme, package or str(exc))) from exc
    except ValueError as exc:
        raise RemoteError(
            _("{uri} has the scheme {scheme}, which fsspec does not know: {error}.").format(
                uri=uri, scheme=scheme, error=exc
            )
        ) from exc
    return system, path


def _missing(uri: str, scheme: str, packages: str) -> str:
    return _(
        "{uri} cannot be read, because the Python of this process lacks a package for {scheme}://: "
        "install {packages}."
    ).format(uri=uri, scheme=scheme, packages=packages)


def _uri_of(system: Any, scheme: str, name: str) -> str:
    """Return the URI of a name, which may be one already."""
    return name if "://" in name else f"{scheme}://{name.lstrip('/')}"


def _error(uri: str, exc: Exception) -> RemoteError:
    if isinstance(exc, FileNotFoundError):
        return MissingFileError(_("There is no file {uri}.").format(uri=uri))
    kind = RefusedAccessError if isinstance(exc, PermissionError) else RemoteError
    text = " ".join(str(exc).split())[:300].rstrip(".") or type(exc).__name__
    return kind(_("{uri} cannot be accessed: {error}.").format(uri=uri, error=text))


def _modified(info: dict[str, Any]) -> float:
    """Return seconds since the epoch; 0: the store does not tell."""
    for key in _TIME_KEYS:
        value = info.get(key)
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    return 0.0
