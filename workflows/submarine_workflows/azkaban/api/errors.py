"""Errors of Azkaban requests. No message contains a session id or password."""

from __future__ import annotations

from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.translation import _


def as_noun(what: str) -> str:
    """Return a request as a noun phrase; ``what`` is one, or ``to show execution 5``."""
    return _("the request {what}").format(what=what) if what.startswith("to ") else what


class AzkabanError(RefusedError):
    """Azkaban refused a request."""


class NoProjectError(AzkabanError):
    """The project does not exist."""


class UnreachableError(ClusterError):
    """Azkaban is unreachable, does not answer in time, or the server is not Azkaban."""


class NotSentError(UnreachableError):
    """Nothing reached the server, so the request may be repeated."""


class UnavailableError(UnreachableError):
    """The server or its proxy is temporarily unavailable; the request may be repeated later."""


class UnconfirmedError(UnreachableError):
    """No answer was received: the request may have been executed."""


class SessionExpiredError(Exception):
    """The session has expired; handled by a new login, not shown to users."""
