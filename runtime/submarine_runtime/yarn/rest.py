"""Client of the REST interfaces of ResourceManager and NodeManager, and queries of containers.

``ResourceManagerClient`` serves both sides. The functions are for containers: they have a short
timeout and report what they do not learn as unknown.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping, Sequence
from urllib.parse import urlsplit

from submarine_runtime.cluster_http import (
    ANONYMOUS,
    REDIRECTS,
    Access,
    Answer,
    HttpClient,
    NoAnswerError,
)
from submarine_runtime.kerberos import INVALID_TOKEN, resourcemanager_access
from submarine_runtime.protocol import AgentConfig, CoordinatorConfig, JobStore
from submarine_runtime.storage import application_id
from submarine_runtime.translation import _
from submarine_runtime.yarn.applications import (
    Application,
    Container,
    application_of,
    containers_of,
)
from submarine_runtime.yarn.cluster_queries import max_bytes
from submarine_runtime.yarn.fields import as_object

#: Timeout in seconds of a request while YARN ends this container, and of one to a NodeManager.
OVER_SECONDS, NODE_SECONDS = 0.5, 2.0
_CONTAINER = re.compile(r"^container_(?:e\d+_)?(\d+)_(\d+)_(\d+)_\d+\Z")


class ResourceManagerClient:
    """The active one of one or more ResourceManagers.

    Parameters
    ----------
    urls
        Base URLs, ``http://host:port``.
    access
        Authentication and certificates.
    timeout
        Seconds for each ResourceManager.
    deadline
        Seconds for all of them together; None: no such limit.
    keep_alive
        Keep the connection between requests, which then wait for each other.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        access: Access = ANONYMOUS,
        timeout: float,
        deadline: float | None = None,
        keep_alive: bool = False,
    ) -> None:
        self._http = HttpClient(
            urls,
            access=access,
            timeout=timeout,
            deadline=deadline,
            standby=_standby,
            keep_alive=keep_alive,
        )

    @property
    def url(self) -> str:
        """Base URL of the ResourceManager that answered last."""
        return self._http.url

    @property
    def urls(self) -> Sequence[str]:
        """Base URLs of all ResourceManagers."""
        return self._http.urls

    @property
    def calls(self) -> int:
        """Number of requests to ResourceManagers."""
        return self._http.calls

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        interface: str = "/ws/v1/cluster",
    ) -> Answer:
        """Send a request for ``<interface><path>``.

        Parameters
        ----------
        content
            JSON object of the request's body; None: no body.

        Raises
        ------
        NoAnswerError
            If no ResourceManager answers, or all are standbys.
        """
        headers, body = {"Accept": "application/json"}, None
        if content is not None:
            headers["Content-Type"], body = "application/json", json.dumps(content).encode()
        limit = max_bytes(path)
        return self._http.request(
            method, interface + path, query, body=body, headers=headers, limit=limit
        )

    def query(self, path: str, **query: str) -> dict[str, Any] | None:
        """Return the JSON object of ``GET /ws/v1/cluster<path>``; None if there is none."""
        try:
            answer = self.request("GET", path, query)
            content = answer.json() if answer.status < 300 else None
        except (NoAnswerError, ValueError):
            return None
        return content if isinstance(content, dict) else None


def _standby(answer: Answer) -> str:
    """See ``HttpClient``: a redirect, a Refresh header, the standby's text, or an unknown token."""
    standby = (
        answer.status in REDIRECTS
        or "refresh" in answer.headers
        or answer.body.lstrip().startswith(b"This is standby RM")
    )
    if standby:
        return _("it is the standby")
    # A standby knows no delegation tokens, and checks them before it redirects.
    unknown = answer.status in (401, 403) and INVALID_TOKEN.encode() in answer.body
    return _("it does not accept the delegation token") if unknown else ""


def application(config: AgentConfig | CoordinatorConfig, timeout: float) -> Application:
    """Return the ResourceManager's data on this application; empty if it does not answer."""
    name = application_id(os.environ)
    access = resourcemanager_access(config.store)
    client = ResourceManagerClient(config.resourcemanagers, access=access, timeout=timeout)
    answer = client.query(f"/apps/{name}") if name else None
    return application_of(answer) or Application({})


def application_was_killed(config: AgentConfig | CoordinatorConfig) -> bool:
    """Return whether a user or an administrator killed the application."""
    app = application(config, OVER_SECONDS)
    return "KILLED" in (app.state, app.final_status)


def application_is_over(config: CoordinatorConfig) -> bool:
    """Return whether no later attempt of this application will start."""
    app = application(config, OVER_SECONDS)
    return app.state in ("KILLED", "FAILED", "FINISHED", "KILLING") or (
        app.final_status in ("KILLED", "FAILED", "SUCCEEDED")
    )


def container_started(
    urls: Sequence[str], container: str, timeout: float, store: JobStore
) -> float | None:
    """Return when YARN granted a container, in seconds since the epoch; None if unknown.

    Parameters
    ----------
    container
        Its id, ``container_e17_1795438692895_0001_01_000002``.
    store
        The job directory, which has the authentication of the container.
    """
    found = _containers_beside(container, urls, timeout, store) or []
    return next((one.started for one in found if one.id == container), None)


def _containers_beside(
    container: str, urls: Sequence[str], timeout: float, store: JobStore
) -> list[Container] | None:
    """Return the containers of the attempt of a container; None if unknown."""
    match = _CONTAINER.match(container)
    if match is None:
        return None
    stamp, application_number, attempt = match.groups()
    access = resourcemanager_access(store)
    client = ResourceManagerClient(urls, access=access, timeout=timeout)
    answer = client.query(containers_path(f"{stamp}_{application_number}", int(attempt)))
    return None if answer is None else containers_of(answer)


def containers_path(name: str, attempt: int) -> str:
    """Return the path of the containers of an attempt; ``name`` is ``1795438692895_0001``."""
    attempt_id = f"appattempt_{name}_{attempt:06d}"
    return f"/apps/application_{name}/appattempts/{attempt_id}/containers"


def container_has_ended(log_url: str, config: CoordinatorConfig) -> bool:
    """Return whether YARN reports that a container has ended.

    The NodeManager knows it first. With Kerberos it accepts no tokens: the ResourceManager answers.

    Parameters
    ----------
    log_url
        ``http://node:port/node/containerlogs/<container>/<user>``.
    """
    try:
        parts = urlsplit(log_url)
    except ValueError:
        return False
    path_parts = parts.path.strip("/").split("/")
    if len(path_parts) < 3:
        return False
    if config.store.uses_tokens:
        return _has_left_the_cluster(path_parts[2], config)
    client = HttpClient([f"{parts.scheme}://{parts.netloc}"], timeout=NODE_SECONDS)
    try:
        answer = client.request("GET", f"/ws/v1/node/containers/{path_parts[2]}")
    except NoAnswerError:
        return False
    found = answer.json_object()
    if answer.status == 404:
        return "NotFound" in str(as_object(found.get("RemoteException")).get("exception"))
    state = as_object(found.get("container")).get("state")
    return answer.status == 200 and state in ("DONE", "COMPLETE")


def _has_left_the_cluster(container: str, config: CoordinatorConfig) -> bool:
    """Return whether the ResourceManager lists the containers of the attempt without this one."""
    found = _containers_beside(container, config.resourcemanagers, NODE_SECONDS, config.store)
    if found is None:
        return False
    states = {one.id: one.state for one in found}
    return states.get(container, "COMPLETE") == "COMPLETE"
