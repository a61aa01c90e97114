"""Convert exceptions to HTTP errors: status, code, message and fix."""

from __future__ import annotations

from dataclasses import dataclass

from tornado.web import HTTPError

from submarine_jobs.client import RequestChangedError, RequestPendingError
from submarine_jobs.errors import (
    ClusterError,
    ConfigError,
    JobFailedError,
    JobNotFoundError,
    NoClusterError,
    RefusedError,
    SubmarineError,
    UsageError,
)
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_server.views import ErrorBodyJson

#: Maximum length of a message; messages of the cluster can be long.
MAX_SENTENCE = 600


class ApiError(HTTPError):
    """An error response.

    Parameters
    ----------
    status
        400, 403, 404, 409, 413, 422, 502, 503 or 504.
    error
        What is wrong, one sentence.
    fix
        What to do.
    code
        Machine-readable code: ``usage not_found forbidden refused unreachable timeout ...``.
    """

    def __init__(self, status: int, error: str, fix: str = "", code: str = "") -> None:
        super().__init__(status)
        self.error = one_line(error, MAX_SENTENCE)
        self.fix = one_line(fix, MAX_SENTENCE)
        self.code = code or _CODES.get(status, "error")

    def body(self) -> ErrorBodyJson:
        """Return the JSON of the response."""
        return {"error": self.error, "fix": self.fix, "code": self.code}


_CODES = {
    400: "usage",
    403: "forbidden",
    404: "not_found",
    405: "method",
    409: "refused",
    413: "too_large",
    503: "busy",
    502: "unreachable",
    504: "timeout",
}


@dataclass(frozen=True)
class _ErrorKind:
    error: type[Exception]
    status: int
    code: str


#: The first matching entry applies.
_KINDS = (
    _ErrorKind(JobNotFoundError, 404, "not_found"),
    _ErrorKind(ConfigError, 502, "config"),
    _ErrorKind(RequestChangedError, 422, "request_id"),
    _ErrorKind(RequestPendingError, 409, "pending"),
    _ErrorKind(UsageError, 400, "usage"),
    _ErrorKind(RefusedError, 409, "refused"),
    _ErrorKind(JobFailedError, 409, "refused"),
    _ErrorKind(NoClusterError, 502, "no_cluster"),
)
_DENIED_WORDS = ("permission denied", "accesscontrolexception", "permissionerror")


def api_error(error: BaseException) -> ApiError | None:
    """Return the response for an exception; None for an unexpected one."""
    if isinstance(error, ApiError):
        return error
    for kind in _KINDS:
        if isinstance(error, kind.error) and isinstance(error, SubmarineError):
            return ApiError(kind.status, error.message, error.fix, kind.code)
    if isinstance(error, ClusterError):
        text = str(error).lower()
        if any(word in text for word in _DENIED_WORDS):
            return ApiError(403, error.message, error.fix)
        timed_out = isinstance(error.__cause__, TimeoutError) or "timed out" in text
        return ApiError(504 if timed_out else 502, error.message, error.fix)
    if isinstance(error, SubmarineError):
        return ApiError(409, error.message, error.fix)
    if isinstance(error, TimeoutError):
        return ApiError(504, _("The cluster has not answered in time."), _("Try again later."))
    if isinstance(error, FileNotFoundError):
        return ApiError(404, _("The job directory does not contain this file."))
    if isinstance(error, PermissionError):
        return ApiError(403, _("This user has no access to the job directory."))
    return None
