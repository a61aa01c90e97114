"""HTTP client for the daemons' REST interfaces on loopback."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from submarine_minicluster.hadoop.spnego import SpnegoError, negotiate
from submarine_runtime.cluster_http import BadUrlError, NoAnswerError, open_url, simple_access
from submarine_runtime.storage import StoreError, WebHdfsStore
from submarine_runtime.translation import _

_TIMEOUT = 5.0
_MAX_BYTES = 4 << 20


class RestError(Exception):
    """A daemon answered with an error or did not answer."""


_KRB5_CONFIG = "KRB5_CONFIG"
_environment_lock = threading.Lock()


@dataclass(frozen=True)
class Access:
    """Authentication of a client of a cluster with Kerberos.

    Attributes
    ----------
    principal, keytab
        Principal of the client, and its keytab.
    krb5_conf
        Kerberos configuration of the cluster.
    ccache
        Ticket cache file; the keytab's tickets are written there.
    ca
        PEM file with the cluster's certificate authority; None: the cluster has no HTTPS.
    """

    principal: str
    keytab: Path
    krb5_conf: Path
    ccache: Path
    ca: Path | None

    def authorization(self, url: str) -> str:
        """Return the value of the ``Authorization`` header of one request.

        Raises
        ------
        SpnegoError
            If there is no ticket.
        """
        # The Kerberos library reads its configuration's path from the environment only.
        with _environment_lock:
            before = os.environ.get(_KRB5_CONFIG)
            os.environ[_KRB5_CONFIG] = str(self.krb5_conf)
            try:
                token = negotiate(
                    urlsplit(url).hostname or "",
                    principal=self.principal,
                    keytab=str(self.keytab),
                    ccache=f"FILE:{self.ccache}",
                )
            finally:
                if before is None:
                    del os.environ[_KRB5_CONFIG]
                else:
                    os.environ[_KRB5_CONFIG] = before
        return f"Negotiate {token}"


def http_request(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    content: str = "application/json",
    accept: str = "application/json",
    access: Access | None = None,
    signed: bool = False,
) -> tuple[int, bytes, str]:
    """Send one request to a loopback address, without a proxy.

    Parameters
    ----------
    body
        Body of the request; None: no body.
    content
        Media type of the body.
    accept
        Media type of the response.
    access
        The client of a cluster with Kerberos; None: the cluster has none.
    signed
        Whether the URL contains a token, so that the client need not be authenticated.

    Returns
    -------
    tuple of int, bytes, str
        Status, body (at most 4 MiB) and the `Location` header.

    Raises
    ------
    RestError
        If there is no answer within 5 s.
    """
    headers = {"Accept": accept, "Content-Type": content}
    try:
        ca = access.ca.read_text() if access and access.ca else ""
        if access and not signed:
            headers["Authorization"] = access.authorization(url)
        with open_url(method, url, _TIMEOUT, body=body, headers=headers, ca=ca) as response:
            answer = response.read_all(_MAX_BYTES)
    except (NoAnswerError, BadUrlError, SpnegoError, OSError) as error:
        raise RestError(f"{url}: {error}") from error
    return answer.status, answer.body, answer.headers.get("location", "")


def get_json(url: str, access: Access | None = None) -> Any:
    """Return the JSON document at `url`.

    Raises
    ------
    RestError
        If the response is not JSON or there is no response.
    """
    status, body, _unused = http_request("GET", url, access=access)
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
        if self.exists(path):
            return
        self.call("PUT", path, "MKDIRS")
        self.call("PUT", path, "SETOWNER", owner=owner, group=group)
        self.call("PUT", path, "SETPERMISSION", permission=mode)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        with _rest_errors("GETFILESTATUS", path):
            return self._store.exists(path)

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


class SecureWebHdfs(WebHdfs):
    """Client of WebHDFS in a cluster with Kerberos.

    Parameters
    ----------
    doas
        User to act for; empty: the client's own.
    """

    def __init__(self, base: str, access: Access, doas: str = "") -> None:
        self._base, self._access, self._doas = base, access, doas

    def call(self, method: str, path: str, op: str, **options: str) -> Any:
        """See `WebHdfs.call`."""
        status, body, _unused = self._request(method, path, op, options)
        if status >= 400:
            raise RestError(f"{op} {path}: HTTP {status}: {_reason(body)}")
        return json.loads(body) if body else None

    def exists(self, path: str) -> bool:
        """See `WebHdfs.exists`."""
        status, body, _unused = self._request("GET", path, "GETFILESTATUS", {})
        if status not in (200, 404):
            raise RestError(f"GETFILESTATUS {path}: HTTP {status}: {_reason(body)}")
        return status == 200

    def write(self, path: str, data: bytes) -> None:
        """See `WebHdfs.write`."""
        _status, body, location = self._request("PUT", path, "CREATE", {"overwrite": "true"})
        if not location:
            raise RestError(f"CREATE {path}: {_reason(body)}")
        # The NameNode has put a delegation token into the DataNode's URL.
        status, body, _location = http_request(
            "PUT",
            location,
            body=data,
            content="application/octet-stream",
            access=self._access,
            signed=True,
        )
        if status >= 300:
            raise RestError(f"CREATE {path}: HTTP {status}: {_reason(body)}")

    def read(self, path: str) -> bytes:
        """Return the content of a file of at most 4 MiB.

        Raises
        ------
        RestError
            If HDFS refuses or does not answer.
        """
        status, body, location = self._request("GET", path, "OPEN", {})
        if location:
            status, body, _unused = http_request("GET", location, access=self._access, signed=True)
        if status >= 300:
            raise RestError(f"OPEN {path}: HTTP {status}: {_reason(body)}")
        return body

    def _request(
        self, method: str, path: str, op: str, options: Mapping[str, str]
    ) -> tuple[int, bytes, str]:
        query = {"op": op, **options, **({"doas": self._doas} if self._doas else {})}
        url = f"{self._base}/webhdfs/v1{quote(path)}?{urlencode(query)}"
        return http_request(method, url, access=self._access)


def _reason(body: bytes) -> str:
    """Return the message of Hadoop's exception, or the text itself."""
    try:
        return str(json.loads(body)["RemoteException"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:300].decode(errors="replace")


@contextmanager
def _rest_errors(op: str, path: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise RestError(f"{op} {path}: {error}") from error
