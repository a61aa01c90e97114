"""Explain why applications wait, with a few cached requests for all applications together.

``submarine_runtime.yarn.pending``, which the coordinator uses too, derives the reason. Without
waiting applications, no requests are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submarine_jobs.backends.yarn.cluster.cache import APPS, NODES, SCHEDULER, ResponseCache
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.yarn import (
    JOB_TAG,
    Application,
    ClusterAnswers,
    ContainerRequest,
    applications_of,
    explain_pending,
)

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

    def explain(self, waiting: Sequence[Application]) -> dict[str, str]:
        """Return application id -> reason for its wait, where that is known."""
        waiting = waiting[:_MAX_EXPLAINED]
        if not waiting:
            return {}
        try:
            answers, needs = self.cluster_state(), self._requests(waiting)
        except (ClusterError, RefusedError):
            return {}
        return self._explain_all(waiting, needs, answers)

    def would_wait(self, needs: Sequence[ContainerRequest], queue: str) -> str:
        """Return why such containers would not be allocated at once; empty if they would.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        return self._explain(needs, queue, "", self.cluster_state())

    def cluster_state(self) -> ClusterAnswers:
        """Return the responses that ``explain_pending`` needs, at most some seconds old."""
        scheduler, nodes = self.cache.get(SCHEDULER), self.cache.get(NODES)
        return ClusterAnswers(scheduler, nodes, known=self.cache.get(APPS))

    def explain_cached(
        self,
        waiting: Sequence[Application],
        needs: Mapping[str, Sequence[ContainerRequest]],
        apps: Sequence[Application],
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
        answers = ClusterAnswers(scheduler, nodes, known=apps)
        return self._explain_all(waiting[:_MAX_EXPLAINED], needs, answers)

    def _requests(self, waiting: Sequence[Application]) -> Mapping[str, Sequence[ContainerRequest]]:
        """Return application id -> its pending container requests."""
        tags = [tag for app in waiting for tag in app.tags if tag.startswith(JOB_TAG)]
        if not tags:
            return {}
        query = {"applicationTags": ",".join(tags), "deSelects": "timeouts,resourceInfo"}
        answer = self._rm.get("/apps", states=_ACTIVE, **query)
        return {app.id: app.requests for app in applications_of(answer)}

    def _explain_all(
        self,
        waiting: Sequence[Application],
        needs: Mapping[str, Sequence[ContainerRequest]],
        answers: ClusterAnswers,
    ) -> dict[str, str]:
        found = {
            app.id: self._explain(needs.get(app.id, ()), app.queue, app.id, answers)
            for app in waiting
        }
        return {identity: sentence for identity, sentence in found.items() if sentence}

    def _explain(
        self,
        needs: Sequence[ContainerRequest],
        queue: str,
        identity: str,
        answers: ClusterAnswers,
    ) -> str:
        return explain_pending(
            needs, queue, answers, user=self._user, application_id=identity, always=False
        )
