"""What may happen on the way to an Azkaban, in words; bounds what comes back.

No error of requests' or urllib3's is shown or logged as it stands: they hold addresses with session
ids in them.
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
    """Takes session ids out of what urllib3 logs of addresses."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _SESSION_ID.sub(r"\1***", record.getMessage())
        record.args = ()
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_NoSessions())


@contextmanager
def in_words(origin: str, what: str, *, safe: bool) -> Iterator[None]:
    """The errors of a request as sentences.

    Parameters
    ----------
    what
        The request, ``the upload``.
    safe
        It changes nothing, so that a broken connection leaves no doubt.
    """
    try:
        yield
    except requests.exceptions.SSLError as exc:
        if not _is_distrust(exc):
            raise UnreachableError(
                f"{origin} speaks no https that is understood here: {_reason(exc)}.",
                "Name its port for https; http:// is accepted on this machine alone.",
            ) from None
        raise UnreachableError(
            f"The certificate of {origin} is not trusted: {_reason(exc)}.",
            "Name the file of its authority by `ca` under [azkaban].",
        ) from None
    except requests.exceptions.ConnectTimeout:
        raise NotSentError(f"{origin} does not answer within {CONNECT:.0f} s.") from None
    except requests.exceptions.ConnectionError as exc:
        if _was_not_sent(exc):
            raise NotSentError(f"{origin} cannot be reached: {_reason(exc)}.") from None
        raise _broken(f"{origin} broke off {noun(what)}: {_reason(exc)}", safe=safe) from None
    except requests.exceptions.Timeout:
        raise _broken(f"{origin} did not answer {noun(what)} in time", safe=safe) from None
    except requests.exceptions.RequestException as exc:
        raise _broken(f"{noun(what)} failed: {type(exc).__name__}", safe=safe) from None
    except ValueError:  # requests reads where a redirect leads, whether or not it goes there
        raise UnreachableError(
            f"{origin} answers {noun(what)} with an address that is none."
        ) from None


def limited(answer: requests.Response, deadline: float, what: str) -> bytes:
    """The body, of a bounded size and in a bounded time however slowly it comes."""
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
    return UnsureError(f"{words}; whether it was done is not known.", "Look at Azkaban's pages.")


def _was_not_sent(exc: BaseException) -> bool:
    cause: Any = exc.args[0] if exc.args else None
    reason = getattr(cause, "reason", cause)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def _is_distrust(exc: BaseException) -> bool:
    """Whether a certificate came, and was not trusted; else what came was no TLS at all."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _inside(exc))


def _inside(exc: BaseException) -> Iterator[BaseException]:
    """An error of requests' and those that it was made of, the innermost last."""
    seen: BaseException | None = exc
    for _ in range(6):
        if seen is None:
            return
        yield seen
        inner: Any = seen.args[0] if seen.args else None
        found = (getattr(inner, "reason", None), seen.__cause__, inner)
        seen = next((one for one in found if isinstance(one, BaseException)), None)


def _reason(exc: BaseException) -> str:
    """The innermost error in a few words."""
    words = type(exc).__name__
    for inner in list(_inside(exc))[1:]:
        said = getattr(inner, "verify_message", "") or getattr(inner, "strerror", "")
        words = str(said or type(inner).__name__)
    return one_line(words, 200)
