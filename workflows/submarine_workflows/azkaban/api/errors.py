"""What may go wrong with an Azkaban; no message holds a session or a password."""

from __future__ import annotations

from submarine_jobs.errors import ClusterError, RefusedError


def noun(what: str) -> str:
    """A request as a noun, ``the upload``, where it may have been ``to show execution 5``."""
    return f"the request {what}" if what.startswith("to ") else what


class AzkabanError(RefusedError):
    """Azkaban answered, and its answer was no."""


class NoProjectError(AzkabanError):
    """There is no project of that name."""


class UnreachableError(ClusterError):
    """Azkaban cannot be reached, does not answer in time, or what answers is no Azkaban."""


class NotSentError(UnreachableError):
    """Nothing reached the server, so asking again does no harm."""


class AwayError(UnreachableError):
    """The server, or what stands before it, is away for a moment."""


class UnsureError(UnreachableError):
    """A request went out and no answer came: what it asked for may have been done."""


class SessionOverError(Exception):
    """The session is not valid any more; a new login makes another. Never seen by a person."""
