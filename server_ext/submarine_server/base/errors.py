"""What goes wrong, as HTTP: a status, a code, one sentence and what would be right.

Does not log and does not write answers (``access``).
"""

from __future__ import annotations

from dataclasses import dataclass

from tornado.web import HTTPError

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

#: Characters of a sentence that may go out; the cluster's words can be long.
MAX_SENTENCE = 600


class ApiError(HTTPError):
    """An answer that is not the one asked for.

    Parameters
    ----------
    status
        400, 403, 404, 409, 413, 502 or 504.
    error
        What is wrong, one sentence.
    fix
        What would be right.
    code
        A word for programs: ``usage not_found forbidden refused unreachable timeout ...``.
    """

    def __init__(self, status: int, error: str, fix: str = "", code: str = "") -> None:
        super().__init__(status)
        self.error = one_line(error, MAX_SENTENCE)
        self.fix = one_line(fix, MAX_SENTENCE)
        self.code = code or _CODES.get(status, "error")

    def body(self) -> dict[str, str]:
        """The JSON that the browser gets."""
        return {"error": self.error, "fix": self.fix, "code": self.code}


_CODES = {
    400: "usage",
    403: "forbidden",
    404: "not_found",
    405: "method",
    409: "refused",
    413: "too_large",
    502: "unreachable",
    504: "timeout",
}


@dataclass(frozen=True)
class _Kind:
    error: type[Exception]
    status: int
    code: str


#: The first that fits counts.
_KINDS = (
    _Kind(JobNotFoundError, 404, "not_found"),
    _Kind(ConfigError, 502, "config"),
    _Kind(UsageError, 400, "usage"),
    _Kind(RefusedError, 409, "refused"),
    _Kind(JobFailedError, 409, "refused"),
    _Kind(NoClusterError, 502, "no_cluster"),
)
_DENIED = ("permission denied", "accesscontrolexception", "permissionerror")


def api_error(error: BaseException) -> ApiError | None:
    """The answer for an error of the core; None where it is a fault of ours."""
    if isinstance(error, ApiError):
        return error
    for kind in _KINDS:
        if isinstance(error, kind.error) and isinstance(error, SubmarineError):
            return ApiError(kind.status, error.message, error.fix, kind.code)
    if isinstance(error, ClusterError):
        text = str(error).lower()
        if any(word in text for word in _DENIED):
            return ApiError(403, error.message, error.fix)
        timed_out = isinstance(error.__cause__, TimeoutError) or "timed out" in text
        return ApiError(504 if timed_out else 502, error.message, error.fix)
    if isinstance(error, SubmarineError):
        return ApiError(409, error.message, error.fix)
    if isinstance(error, TimeoutError):
        return ApiError(504, "The cluster has not answered in time.", "Try again later.")
    if isinstance(error, FileNotFoundError):
        return ApiError(404, "The job's directory does not hold that.")
    if isinstance(error, PermissionError):
        return ApiError(403, "The job's directory is not open to this user.")
    return None
