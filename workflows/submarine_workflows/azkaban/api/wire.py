"""Convert errors of HTTP requests to messages, and limit responses.

Errors of requests and urllib3 are not shown or logged unchanged: they contain URLs with session
ids.
"""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
import urllib3.exceptions

from submarine_jobs.text import one_line
from submarine_workflows.azkaban.api.errors import (
    AwayError,
    NotSentError,
    UnreachableError,
    UnsureError,
    noun,
)

#: Seconds for a connection.
CONNECT = 10.0
MAX_REPLY = 64 << 20
_SESSION_ID = re.compile(r"(session\.id=)[^&\s\"']+")


class _NoSessions(logging.Filter):
    """Removes session ids from the URLs that urllib3 logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _SESSION_ID.sub(r"\1***", record.getMessage())
        record.args = ()
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_NoSessions())


@contextmanager
def in_words(origin: str, what: str, *, safe: bool) -> Iterator[None]:
    """Convert the errors of a request to messages.

    Parameters
    ----------
    what
        Description of the request, ``the upload``.
    safe
        Whether the request changes nothing, so a broken connection is unambiguous.
    """
    try:
        yield
    except requests.exceptions.SSLError as exc:
        if not _is_distrust(exc):
            raise UnreachableError(
                f"{origin} does not support https: {_reason(exc)}.",
                "Use its https port; http:// is accepted only on this machine.",
            ) from None
        raise UnreachableError(
            f"The certificate of {origin} is not trusted: {_reason(exc)}.",
            "Set `ca` under [azkaban] to the certificate file of its CA.",
        ) from None
    except requests.exceptions.ConnectTimeout:
        raise NotSentError(f"{origin} does not answer within {CONNECT:.0f} s.") from None
    except requests.exceptions.ConnectionError as exc:
        if _was_not_sent(exc):
            raise NotSentError(f"{origin} cannot be reached: {_reason(exc)}.") from None
        raise _broken(
            f"{origin} closed the connection during {noun(what)}: {_reason(exc)}", safe=safe
        ) from None
    except requests.exceptions.Timeout:
        raise _broken(f"{origin} did not answer {noun(what)} in time", safe=safe) from None
    except requests.exceptions.RequestException as exc:
        raise _broken(f"{noun(what)} failed: {type(exc).__name__}", safe=safe) from None
    except ValueError:  # requests parses the redirect URL even if it is not followed
        raise UnreachableError(f"{origin} answers {noun(what)} with an invalid redirect.") from None


def limited(answer: requests.Response, deadline: float, what: str) -> bytes:
    """Return the body, with a limit of size and of time."""
    parts, size = [], 0
    for part in answer.iter_content(1 << 16):
        size += len(part)
        if size > MAX_REPLY:
            raise UnreachableError(
                f"The answer to {noun(what)} is larger than {MAX_REPLY >> 20} MiB."
            )
        if time.monotonic() > deadline:
            raise requests.exceptions.ReadTimeout
        parts.append(part)
    return b"".join(parts)


def _broken(words: str, *, safe: bool) -> UnreachableError:
    if safe:
        return AwayError(f"{words}.")
    return UnsureError(
        f"{words}; the request may have been executed.", "Check Azkaban's web pages."
    )


def _was_not_sent(exc: BaseException) -> bool:
    cause: Any = exc.args[0] if exc.args else None
    reason = getattr(cause, "reason", cause)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def _is_distrust(exc: BaseException) -> bool:
    """Return whether a certificate is not trusted; else the server does not use TLS."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _inside(exc))


def _inside(exc: BaseException) -> Iterator[BaseException]:
    """Yield an error of requests and its causes, innermost last."""
    seen: BaseException | None = exc
    for _ in range(6):
        if seen is None:
            return
        yield seen
        inner: Any = seen.args[0] if seen.args else None
        found = (getattr(inner, "reason", None), seen.__cause__, inner)
        seen = next((one for one in found if isinstance(one, BaseException)), None)


def _reason(exc: BaseException) -> str:
    """Return the innermost error in a few words."""
    words = type(exc).__name__
    for inner in list(_inside(exc))[1:]:
        said = getattr(inner, "verify_message", "") or getattr(inner, "strerror", "")
        words = str(said or type(inner).__name__)
    return one_line(words, 200)
