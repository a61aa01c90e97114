"""Errors of remote files; they are OSErrors too, as callers of a file object expect."""

from __future__ import annotations

from submarine_data.errors import DataError


class RemoteError(DataError, OSError):
    """A remote file cannot be read or written."""


class MissingFileError(RemoteError, FileNotFoundError):
    """There is no file at a URI."""


class RefusedAccessError(RemoteError, PermissionError):
    """The user may not read or write a file."""
