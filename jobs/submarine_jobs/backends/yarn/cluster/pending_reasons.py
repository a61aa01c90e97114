"""Explain why applications wait, with a few cached requests for all applications together.

``submarine_runtime.yarn.pending``, which the coordinator uses too, derives the reason. Without
waiting applications, no requests are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from submarine_jobs.backends.yarn.cluster.cache import APPS, NODES, SCHEDULER, ResponseCache
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.yarn import ContainerRequest, Size, explain_pending, parse_size

_ACTIVE = "ACCEPTED,RUNNING"
#: Maximum number of applications that are explained.
_MAX_EXPLAINED = 40


class Waits:
    """Explains why applications wait on one cluster.

    Parameters
    ----------
    user
        The submitting user, for limits of a user.

    Attributes
    ----------
    cache
        Recent responses about the whole cluster.
    """

    def __init__(self, rm: ResourceManager, user: str) -> None:
        self._rm, self._user = rm, user
        self.cache = ResponseCache(rm)

    def explain(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return application id -> reason for its wait, where that is known.

        Parameters
        ----------
        waiting
            Applications as the ResourceManager lists them.
        """
        if not waiting:
            return {}
        try:
            responses, requests = self.cluster_state(), self._requests(waiting[:_MAX_EXPLAINED])
        except (ClusterError, RefusedError):
            return {}
        found = {}
        for app in waiting[:_MAX_EXPLAINED]:
            identity = str(app.get("id"))
            queue = str(app.get("queue") or "")
            needs = requests.get(identity, [])
            found[identity] = self._explain(needs, queue, identity, responses)
        return {identity: sentence for identity, sentence in found.items() if sentence}

    def would_wait(self, needs: Sequence[ContainerRequest], queue: str) -> str:
        """Return why such containers would not be allocated at once; empty if they would.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        return self._explain(needs, queue, "", self.cluster_state())

    def cluster_state(self) -> dict[str, Any]:
        """Return the responses that ``explain_pending`` needs, at most some seconds old."""
        return {what: self.cache.get(what) for what in (SCHEDULER, NODES, APPS)}

    def explain_cached(
        self,
        waiting: Sequence[Mapping[str, Any]],
        needs: Mapping[str, Sequence[ContainerRequest]],
        apps: Sequence[Mapping[str, Any]],
    ) -> dict[str, str]:
        """Explain waits as ``explain`` does, from the last responses, without a request.

        Parameters
        ----------
        needs
            Application id -> its pending container requests.
        apps
            The known active applications.
        """
        scheduler, nodes = self.cache.latest(SCHEDULER), self.cache.latest(NODES)
        if scheduler is None or nodes is None:
            return {}
        responses = {SCHEDULER: scheduler, NODES: nodes, APPS: {"apps": {"app": apps}}}
        found = {}
        for app in waiting[:_MAX_EXPLAINED]:
            identity, queue = str(app.get("id")), str(app.get("queue") or "")
            if sentence := self._explain(needs.get(identity, ()), queue, identity, responses):
                found[identity] = sentence
        return found

    def _requests(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, list[ContainerRequest]]:
        """Return application id -> its pending container requests."""
        tags = [tag for app in waiting if (tag := _own_tag(app))]
        if not tags:
            return {}
        response = self._rm.get("/apps", states=_ACTIVE, applicationTags=",".join(tags))
        apps = ((response or {}).get("apps") or {}).get("app") or []
        return {str(app.get("id")): needs_of(app) for app in apps}

    def _explain(
        self,
        needs: Sequence[ContainerRequest],
        queue: str,
        identity: str,
        responses: Mapping[str, Any],
    ) -> str:
        try:
            return explain_pending(
                needs, queue, user=self._user, application_id=identity, always=False, **responses
            )
        except (TypeError, ValueError, AttributeError, KeyError):
            return ""  # a response of an unknown format


def needs_of(app: Mapping[str, Any]) -> list[ContainerRequest]:
    """Return the pending container requests of an application, one entry for each size."""
    raw = app.get("resourceRequests") or []
    entries = [raw] if isinstance(raw, Mapping) else [one for one in raw if one]
    counted: dict[tuple[Size, str], int] = {}
    for entry in entries:
        if entry.get("resourceName") == "*":
            kind = parse_size(entry.get("capability")), str(entry.get("nodeLabelExpression") or "")
            counted[kind] = counted.get(kind, 0) + int(entry.get("numContainers") or 0)
    master = app.get("state") == "ACCEPTED"
    return [
        ContainerRequest(count, each.memory, each.vcores, each.gpus, label=label, master=master)
        for (each, label), count in counted.items()
    ]


def _own_tag(app: Mapping[str, Any]) -> str:
    tags = str(app.get("applicationTags") or "").split(",")
    return next((tag for tag in tags if tag.startswith("submarine_job:")), "")
