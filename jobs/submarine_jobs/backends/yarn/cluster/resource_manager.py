"""The ResourceManager's REST interface: JSON of responses, errors for users, kill and priority.

``submarine_runtime.yarn.ResourceManagerClient`` sends the requests, keeps the connection and finds
the active ResourceManager; the parser is there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from submarine_jobs.errors import (
    TRUST_CA,
    ClusterError,
    RefusedError,
    TicketError,
    impersonation_refusal,
)
from submarine_runtime.cluster_http import Access, Answer, NoAnswerError, SignInError
from submarine_runtime.translation import _
from submarine_runtime.yarn import ResourceManagerClient


class ResourceManager:
    """The active one of one or more ResourceManagers.

    Parameters
    ----------
    urls
        Base URLs, ``http://host:port``.
    timeout
        Seconds for one request, including all attempts.
    access
        Authentication and certificates.
    problem
        Returns why a sign-in failed.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout: float,
        access: Access,
        problem: Callable[[Exception], str] = str,
    ) -> None:
        self._problem = problem
        self._client = ResourceManagerClient(
            urls, access=access, timeout=timeout, deadline=timeout, keep_alive=True
        )

    @property
    def url(self) -> str:
        """Base URL of the ResourceManager that answered last."""
        return self._client.url

    @property
    def calls(self) -> int:
        """Number of requests to ResourceManagers."""
        return self._client.calls

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON of ``GET /ws/v1/cluster<path>``; None for status 404.

        Raises
        ------
        ClusterError
            If no ResourceManager answers in time, or the response is not JSON.
        RefusedError
            If the response has an error status.
        """
        answer = self._request("GET", path, query)
        return None if answer.status == 404 else self._decode(answer)

    def setting(self, name: str) -> str | None:
        """Return a value of the ResourceManager's own configuration; None if it is not shown."""
        try:
            answer = self._client.request("GET", "/conf", {"name": name}, interface="")
            found = answer.json()["property"]
            return str(found["value"]) if answer.status == 200 else None
        except (NoAnswerError, SignInError, ValueError, KeyError, TypeError):
            return None

    def kill(self, application_id: str, reason: str) -> bool:
        """Kill an application; return False if this interface is not allowed to.

        The request may be repeated after a lost reply.
        """
        path, killed = f"/apps/{application_id}/state", {"state": "KILLED"}
        answer = self._request("PUT", path, content={**killed, "diagnostics": reason[:400]})
        if answer.status == 400:  # Hadoop before 3.0 accepts only the state
            answer = self._request("PUT", path, content=killed)
        if answer.status in (401, 403):
            return False
        if answer.status != 404:
            self._decode(answer)
        return True

    def set_priority(self, application_id: str, priority: int) -> str | None:
        """Set an application's priority in its queue; return one sentence if that failed, or None.

        Raises
        ------
        ClusterError
            If no ResourceManager answers in time.
        """
        path = f"/apps/{application_id}/priority"
        answer = self._request("PUT", path, content={"priority": priority})
        if answer.status in (401, 403):
            return _("The ResourceManager does not let you set a priority ({status}).").format(
                status=answer.status
            )
        try:
            decoded = self._decode(answer)
        except RefusedError as exc:
            return exc.message
        given = decoded.get("priority") if isinstance(decoded, dict) else None
        if isinstance(given, int) and given != priority:
            return _(
                "The ResourceManager set it to {given}, the maximum of the queue or the cluster."
            ).format(given=given)
        return None

    def _decode(self, answer: Answer) -> Any:
        if answer.status == 401:
            raise TicketError(
                _("the ResourceManager at {url} rejects the sign-in").format(url=self.url)
            )
        try:
            content = answer.json() if answer.body else {}
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
        if answer.status >= 400:
            remote = content.get("RemoteException") if isinstance(content, dict) else None
            said = remote.get("message") if isinstance(remote, dict) else None
            message = " ".join(str(said or answer.status).split())[:300]
            if denied := impersonation_refusal(message):
                raise RefusedError(*denied)
            raise RefusedError(
                _("The ResourceManager at {url} refused: {message}.").format(
                    url=self.url, message=message
                )
            )
        return content

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> Answer:
        try:
            return self._client.request(method, path, query, content)
        except SignInError as exc:
            raise TicketError(self._problem(exc)) from exc
        except NoAnswerError as exc:
            if exc.too_long:
                raise ClusterError(
                    _("{path} of the ResourceManager at {url} is not read: {failure}.").format(
                        path=path.partition("?")[0][:100], url=self.url, failure=exc
                    ),
                    _("Check that a ResourceManager answers there, and the size of its lists."),
                ) from exc
            raise ClusterError(
                _("The ResourceManager at {urls} does not answer: {failure}.").format(
                    urls=" and ".join(self._client.urls), failure=exc
                ),
                _(TRUST_CA)
                if exc.untrusted
                else _(
                    "Check that it is up and that yarn.resourcemanager.webapp.address is right."
                ),
            ) from exc


def application_path(application_id: str, *more: str) -> str:
    """Return the path of an application, or of something below it."""
    return "/".join(("/apps", quote(application_id), *more))
