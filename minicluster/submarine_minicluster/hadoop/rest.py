"""HTTP client for the daemons' REST interfaces on loopback."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from submarine_runtime.translation import _

_TIMEOUT = 5.0


class RestError(Exception):
    """A daemon answered with an error or did not answer."""


def http_request(
    method: str, url: str, *, body: bytes | None = None, content: str = "application/json"
) -> tuple[int, bytes, str]:
    """Send one request to a loopback address, without a proxy.

    Parameters
    ----------
    body
        Body of the request; None: no body.
    content
        Media type of the body.

    Returns
    -------
    tuple of int, bytes, str
        Status, body (at most 4 MiB) and the `Location` header.

    Raises
    ------
    RestError
        If there is no answer within 5 s.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=_TIMEOUT)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": "application/json", "Content-Type": content}
        connection.request(method, target, body, headers)
        with connection.getresponse() as answer:
            return answer.status, answer.read(4 << 20), answer.headers.get("Location", "")
    except (OSError, http.client.HTTPException) as error:
        raise RestError(f"{url}: {error or type(error).__name__}") from error
    finally:
        connection.close()


def get_json(url: str) -> Any:
    """Return the JSON document at `url`.

    Raises
    ------
    RestError
        If the response is not JSON or there is no response.
    """
    status, body, _unused = http_request("GET", url)
    if status != 200:
        raise RestError(_("{url}: HTTP {status}").format(url=url, status=status))
    try:
        return json.loads(body)
    except ValueError as error:
        raise RestError(_("{url}: not JSON").format(url=url)) from error


class WebHdfs:
    """Client of WebHDFS that acts as one HDFS user (simple authentication)."""

    def __init__(self, base: str, user: str) -> None:
        self._base = base
        self._user = user

    def _url(self, path: str, op: str, options: dict[str, str]) -> str:
        query = urlencode({"op": op, "user.name": self._user, **options})
        return f"{self._base}/webhdfs/v1{quote(path)}?{query}"

    def call(self, method: str, path: str, op: str, **options: str) -> Any:
        """Make one call without data and return the JSON answer; None if it has no body.

        Raises
        ------
        RestError
            If there is no answer, or the status is an error.
        """
        status, body, _ = http_request(method, self._url(path, op, options))
        if status >= 400:
            raise RestError(f"{op} {path}: {_reason(status, body)}")
        return json.loads(body) if body else None

    def mkdir(self, path: str, *, owner: str, group: str, mode: str) -> None:
        """Create a directory with an owner and mode; an existing directory is not changed."""
        try:
            self.call("GET", path, "GETFILESTATUS")
            return
        except RestError:
            pass
        self.call("PUT", path, "MKDIRS")
        self.call("PUT", path, "SETOWNER", owner=owner, group=group)
        self.call("PUT", path, "SETPERMISSION", permission=mode)

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or replace it.

        Raises
        ------
        RestError
            If HDFS rejects the file or does not answer.
        """
        status, body, location = http_request(
            "PUT", self._url(path, "CREATE", {"overwrite": "true"})
        )
        if status == 307:
            status, body, _unused = http_request(
                "PUT", location, body=data, content="application/octet-stream"
            )
        if status != 201:
            raise RestError(
                _("CREATE {path}: {reason}").format(path=path, reason=_reason(status, body))
            )

    def delete(self, path: str) -> None:
        """Remove a file."""
        self.call("DELETE", path, "DELETE")


def _reason(status: int, body: bytes) -> str:
    """Return the first line of the server's error message, else the status."""
    try:
        return str(json.loads(body)["RemoteException"]["message"]).splitlines()[0][:300]
    except (ValueError, KeyError, TypeError, IndexError):
        return f"HTTP {status}"
