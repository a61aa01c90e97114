"""HTTP client for the daemons' REST interfaces on loopback."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_runtime import cluster_http
from submarine_runtime.cluster_http import BadUrlError, NoAnswerError, open_url, simple_access
from submarine_runtime.kerberos import Credential, GssError, Negotiation, negotiate
from submarine_runtime.storage import StoreError, WebHdfsStore
from submarine_runtime.translation import _

_TIMEOUT = 5.0
_MAX_BYTES = 4 << 20


class RestError(Exception):
    """A daemon answered with an error or did not answer."""


_KRB5_CONFIG = "KRB5_CONFIG"
_environment_lock = threading.Lock()


@contextmanager
def _configuration(path: Path) -> Iterator[None]:
    """Let the Kerberos library read the configuration of one cluster; only the environment can."""
    with _environment_lock:
        before = os.environ.get(_KRB5_CONFIG)
        os.environ[_KRB5_CONFIG] = str(path)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_KRB5_CONFIG]
            else:
                os.environ[_KRB5_CONFIG] = before


class _ClusterNegotiation(Negotiation):
    """Negotiation with the key distribution center of one cluster."""

    def __init__(self, credential: Credential, krb5_conf: Path, acting_as: str) -> None:
        super().__init__(credential, acting_as)
        self._krb5_conf = krb5_conf

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See `Authentication.sign`."""
        with _configuration(self._krb5_conf):
            super().sign(host, place, query, headers)


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

    @property
    def credential(self) -> Credential:
        """The source of the client's tickets."""
        return Credential(self.principal, str(self.keytab), f"FILE:{self.ccache}")

    def authorization(self, url: str) -> str:
        """Return the value of the ``Authorization`` header of one request.

        Raises
        ------
        GssError
            If there is no ticket.
        """
        with _configuration(self.krb5_conf):
            return f"Negotiate {negotiate(urlsplit(url).hostname or '', self.credential)}"

    def acting_as(self, user: str) -> cluster_http.Access:
        """Return the access to the interfaces; for another user, unless ``user`` is empty."""
        ca = self.ca.read_text() if self.ca else ""
        negotiation = _ClusterNegotiation(self.credential, self.krb5_conf, user)
        return cluster_http.Access(negotiation, ca)


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
    except (NoAnswerError, BadUrlError, GssError, OSError) as error:
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

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises
        ------
        RestError
            If there is none, or HDFS does not answer.
        """
        with _rest_errors("OPEN", path):
            data = self._store.read(path)
        if data is None:
            raise RestError(_("OPEN {path}: there is no such file").format(path=path))
        return data

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
        self._store = WebHdfsStore([base], "", access.acting_as(doas), _TIMEOUT)


@contextmanager
def _rest_errors(op: str, path: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise RestError(f"{op} {path}: {error}") from error
