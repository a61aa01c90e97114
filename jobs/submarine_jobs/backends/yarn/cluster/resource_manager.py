"""The ResourceManager's REST interface: one request at a time, with timeout and failover.

Returns the JSON of the response; other modules interpret it. Responses have a maximum size. Proxy
variables are ignored.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.network import check_complete
from submarine_runtime.translation import _

MAX_RESPONSE = 64 << 20
Json = Mapping[str, Any]


class ResourceManager:
    """The active one of one or more ResourceManagers.

    Parameters
    ----------
    urls
        Base URLs, ``http://host:port``.
    timeout
        Seconds for one request, including all attempts.
    user
        For simple authentication.
    """

    def __init__(self, urls: Sequence[str], *, timeout: float, user: str) -> None:
        self._urls = list(urls)
        self._timeout = timeout
        self._user = user
        self._active = 0
        self._lock = threading.Lock()
        self._connection: tuple[str, http.client.HTTPConnection] | None = None
        self.calls = 0

    def __del__(self) -> None:
        self._drop()

    @property
    def url(self) -> str:
        """Base URL of the ResourceManager that answered last."""
        return self._urls[self._active]

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON of ``GET /ws/v1/cluster<path>``; None for status 404.

        Raises
        ------
        ClusterError
            If no ResourceManager answers in time, or the response is not JSON.
        RefusedError
            If the response has an error status.
        """
        status, body = self._request("GET", path, query, None)
        if status == 404:
            return None
        return self._decode(status, body)

    def kill(self, application_id: str, reason: str) -> bool:
        """Kill an application; return False if this interface is not allowed to.

        The request may be repeated after a lost reply.
        """
        body = json.dumps({"state": "KILLED", "diagnostics": reason[:400]}).encode()
        path = f"/apps/{application_id}/state"
        status, answer = self._request("PUT", path, {}, body)
        if status == 400:  # Hadoop before 3.0 accepts only the state
            status, answer = self._request("PUT", path, {}, b'{"state": "KILLED"}')
        if status in (401, 403):
            return False
        if status != 404:
            self._decode(status, answer)
        return True

    def set_priority(self, application_id: str, priority: int) -> str | None:
        """Set an application's priority in its queue; return one sentence if that failed, or None.

        Raises
        ------
        ClusterError
            If no ResourceManager answers in time.
        """
        body = json.dumps({"priority": priority}).encode()
        status, answer = self._request("PUT", f"/apps/{application_id}/priority", {}, body)
        if status in (401, 403):
            return _("The ResourceManager does not let you set a priority ({status}).").format(
                status=status
            )
        try:
            decoded = self._decode(status, answer)
        except RefusedError as exc:
            return exc.message
        given = decoded.get("priority") if isinstance(decoded, dict) else None
        if given is not None and int(given) != priority:
            return _(
                "The ResourceManager set it to {given}, the maximum of the queue or the cluster."
            ).format(given=given)
        return None

    def _decode(self, status: int, body: bytes) -> Any:
        if status == 401:
            raise ClusterError(
                _("The ResourceManager at {url} asks for Kerberos (SPNEGO).").format(url=self.url),
                _("This release of Submarine does not support Kerberos."),
            )
        try:
            answer = json.loads(body) if body else {}
        except ValueError as exc:
            raise ClusterError(
                _("The ResourceManager at {url} answered with something else than JSON.").format(
                    url=self.url
                ),
                _(
                    "Check yarn.resourcemanager.webapp.address: it must be a ResourceManager's "
                    "port."
                ),
            ) from exc
        if status >= 400:
            remote = answer.get("RemoteException", {}) if isinstance(answer, dict) else {}
            message = " ".join(str(remote.get("message") or status).split())[:300]
            raise RefusedError(
                _("The ResourceManager at {url} refused: {message}.").format(
                    url=self.url, message=message
                )
            )
        return answer

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        """Send to the active ResourceManager; on failure to the others, then to the first again."""
        parameters = {**query, "user.name": self._user}
        target = f"/ws/v1/cluster{path}?{urlencode(parameters)}"
        deadline = time.monotonic() + self._timeout
        failure = _("no address is configured")
        with self._lock:
            for attempt in range(len(self._urls) + 1):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                try:
                    status, headers, answer = self._request_once(method, target, body, left)
                except (OSError, http.client.HTTPException) as exc:
                    failure = str(exc) or type(exc).__name__
                    self._drop()
                else:
                    if not _is_standby(status, headers, answer):
                        return status, answer
                    failure = _("it is the standby")
                if attempt < len(self._urls):
                    self._active = (self._active + 1) % len(self._urls)
        raise ClusterError(
            _("The ResourceManager at {urls} does not answer: {failure}.").format(
                urls=" and ".join(self._urls), failure=failure
            ),
            _("Check that it is up and that yarn.resourcemanager.webapp.address is right."),
        )

    def _request_once(
        self, method: str, target: str, body: bytes | None, left: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._connect(left)
        self.calls += 1
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, target, body, headers)
        with connection.getresponse() as reply:
            answer = reply.read(MAX_RESPONSE + 1)
            if len(answer) > MAX_RESPONSE:
                raise http.client.HTTPException(
                    _("the answer is longer than {limit} MB").format(limit=MAX_RESPONSE >> 20)
                )
            check_complete(reply, answer)
        if reply.will_close:
            self._drop()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, answer

    def _connect(self, left: float) -> http.client.HTTPConnection:
        url = self.url
        if self._connection is not None and self._connection[0] == url:
            connection = self._connection[1]
            if connection.sock is not None:
                connection.sock.settimeout(left)
            return connection
        self._drop()
        parts = urlsplit(url)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            new: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=left, context=context
            )
        else:
            new = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=left)
        self._connection = (url, new)
        return new

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


def _is_standby(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the response is a standby's: a redirect, a Refresh header, or its text."""
    if status in (301, 302, 303, 307):
        return True
    return "refresh" in headers or body.lstrip().startswith(b"This is standby RM")
