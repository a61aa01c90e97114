"""HTTP client for the daemons' REST interfaces on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from submarine_runtime.cluster_http import BadUrlError, NoAnswerError, open_url, simple_access
from submarine_runtime.storage import StoreError, WebHdfsStore
from submarine_runtime.translation import _

_TIMEOUT = 5.0
_MAX_BYTES = 4 << 20


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
    headers = {"Accept": "application/json", "Content-Type": content}
    try:
        with open_url(method, url, _TIMEOUT, body=body, headers=headers) as response:
            answer = response.read_all(_MAX_BYTES)
    except (NoAnswerError, BadUrlError) as error:
        raise RestError(f"{url}: {error}") from error
    return answer.status, answer.body, answer.headers.get("location", "")


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
        self._store = WebHdfsStore([base], "", simple_access(user), _TIMEOUT)

    def call(self, method: str, path: str, op: str, **options: str) -> Any:
        """Make one call without data and return the JSON answer; None if it has no body.

        Raises
        ------
        RestError
            If there is no answer, or the status is an error.
        """
        with _rest_errors(op, path):
            answer = self._store.call(method, path, op, options)
        return answer.json() if answer.body else None

    def mkdir(self, path: str, *, owner: str, group: str, mode: str) -> None:
        """Create a directory with an owner and mode; an existing directory is not changed."""
        with _rest_errors("GETFILESTATUS", path):
            if self._store.exists(path):
                return
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
        with _rest_errors("CREATE", path):
            self._store.create(path, [data], len(data))

    def delete(self, path: str) -> None:
        """Remove a file."""
        self.call("DELETE", path, "DELETE")


@contextmanager
def _rest_errors(op: str, path: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise RestError(f"{op} {path}: {error}") from error
