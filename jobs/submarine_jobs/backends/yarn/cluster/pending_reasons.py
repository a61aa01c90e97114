"""Why applications wait, in one sentence each: a few questions for all of them together, seldom.

The judgement is ``submarine_runtime.yarn.pending``'s, which the coordinator of a distributed
job uses as well. Nothing is asked while nothing waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from submarine_jobs.backends.yarn.cluster.cache import APPS, NODES, SCHEDULER, Answers
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.yarn import ContainerRequest, Size, explain_pending, parse_size

_ACTIVE = "ACCEPTED,RUNNING"
#: So many applications are asked for what they still request, by their tags.
_MOST = 40


class Waits:
    """Explains waits on one cluster.

    Parameters
    ----------
    user
        Who acts there: limits of a user are this one's.

    Attributes
    ----------
    answers
        What was said of the cluster as a whole.
    """

    def __init__(self, rm: ResourceManager, user: str) -> None:
        self._rm, self._user = rm, user
        self.answers = Answers(rm)

    def sentences(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Application id -> why it waits; only those of which that is known.

        Parameters
        ----------
        waiting
            Applications as the ResourceManager lists them.
        """
        if not waiting:
            return {}
        try:
            answers, requests = self.cluster(), self._requests(waiting[:_MOST])
        except (ClusterError, RefusedError):
            return {}
        found = {}
        for app in waiting[:_MOST]:
            identity = str(app.get("id"))
            queue = str(app.get("queue") or "")
            needs = requests.get(identity, [])
            found[identity] = self._explain(needs, queue, identity, answers)
        return {identity: sentence for identity, sentence in found.items() if sentence}

    def would_wait(self, needs: Sequence[ContainerRequest], queue: str) -> str:
        """Why containers of this size would not be there at once; empty if they would.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        return self._explain(needs, queue, "", self.cluster())

    def cluster(self) -> dict[str, Any]:
        """What ``explain`` needs of the cluster, at most some seconds old."""
        return {what: self.answers.ask(what) for what in (SCHEDULER, NODES, APPS)}

    def judged(
        self,
        waiting: Sequence[Mapping[str, Any]],
        needs: Mapping[str, Sequence[ContainerRequest]],
        apps: Sequence[Mapping[str, Any]],
    ) -> dict[str, str]:
        """As ``sentences``, from what was said last: asks nothing.

        Parameters
        ----------
        needs
            Application id -> what it still asks for.
        apps
            The applications that go on, as far as they are known.
        """
        scheduler, nodes = self.answers.last(SCHEDULER), self.answers.last(NODES)
        if scheduler is None or nodes is None:
            return {}
        answers = {SCHEDULER: scheduler, NODES: nodes, APPS: {"apps": {"app": apps}}}
        found = {}
        for app in waiting[:_MOST]:
            identity, queue = str(app.get("id")), str(app.get("queue") or "")
            if sentence := self._explain(needs.get(identity, ()), queue, identity, answers):
                found[identity] = sentence
        return found

    def _requests(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, list[ContainerRequest]]:
        """Application id -> what it still asks for."""
        tags = [tag for app in waiting if (tag := _own_tag(app))]
        if not tags:
            return {}
        answer = self._rm.get("/apps", states=_ACTIVE, applicationTags=",".join(tags))
        apps = ((answer or {}).get("apps") or {}).get("app") or []
        return {str(app.get("id")): needs_of(app) for app in apps}

    def _explain(
        self,
        needs: Sequence[ContainerRequest],
        queue: str,
        identity: str,
        answers: Mapping[str, Any],
    ) -> str:
        try:
            return explain_pending(
                needs, queue, user=self._user, application_id=identity, always=False, **answers
            )
        except (TypeError, ValueError, AttributeError, KeyError):
            return ""  # an answer of another form than any that we know


def needs_of(app: Mapping[str, Any]) -> list[ContainerRequest]:
    """What an application still asks for, one entry a size."""
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
