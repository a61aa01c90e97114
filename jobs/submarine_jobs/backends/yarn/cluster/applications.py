"""Convert the applications that the ResourceManager lists into observations of jobs.

One request for any number of jobs. Only applications that are missing in the list, and ended ones
without a clear reason, take one more request each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from submarine_jobs.backends.base import Handle, Observation, Stage
from submarine_jobs.backends.yarn.cluster.diagnostics import end_reason, is_launched, wait_reason
from submarine_jobs.backends.yarn.cluster.pending_reasons import Waits
from submarine_jobs.backends.yarn.cluster.resource_manager import (
    ResourceManager,
    application_path,
)
from submarine_jobs.backends.yarn.cluster.tags import BESIDE_TAG, GANG_TAG, tag_of
from submarine_jobs.errors import RefusedError
from submarine_runtime.protocol import EndReason
from submarine_runtime.translation import _
from submarine_runtime.yarn import (
    ACTIVE_STATES,
    ALL_DETAILS,
    TAG,
    TYPES,
    Application,
    application_of,
    applications_of,
    attempt_diagnostics,
    containers_of,
    containers_path,
    localizing_sentence,
)

#: Maximum number of jobs that are requested by their own tags; more are requested by ``TAG``.
_BY_NAME = 40
_SKEW = 3600.0
_VAGUE = frozenset((EndReason.MASTER_LOST, EndReason.AGENT_LOST))


def observe(
    rm: ResourceManager, handles: Mapping[str, Handle], waits: Waits | None = None
) -> dict[str, Observation]:
    """Return an observation of each job; ``waits`` explains those that wait."""
    if not handles:
        return {}
    listed = {app.id: app for app in _list(rm, handles)}
    found: dict[str, Observation] = {}
    waiting: dict[str, Application] = {}
    for job_id, handle in handles.items():
        application_id = str(handle["application_id"])
        app = listed.get(application_id)
        if app is None:  # unknown to YARN, or without its tag: request it by id
            app = application(rm, application_id)
        if app is None:
            found[job_id] = Observation(Stage.UNKNOWN, handle=handle)
        else:
            found[job_id] = observation(rm, app, handle)
            if found[job_id].stage is Stage.WAITING:
                waiting[job_id] = app
    reasons = waits.explain(list(waiting.values())) if waits is not None else {}
    return {**found, **explained(found, waiting, reasons)}


def explained(
    found: Mapping[str, Observation],
    waiting: Mapping[str, Application],
    reasons: Mapping[str, str],
) -> dict[str, Observation]:
    """Return the observations of ``waiting`` (job -> application) that have a better reason.

    Parameters
    ----------
    reasons
        Application id -> why it waits.
    """
    return {
        job_id: replace(found[job_id], pending=_pending(found[job_id], app, reason))
        for job_id, app in waiting.items()
        if (reason := reasons.get(app.id))
    }


def _pending(observed: Observation, app: Application, reason: str) -> str:
    """Return the reason, after the number of allocated containers if there are some."""
    if app.state != "RUNNING":
        return reason
    return f"{observed.pending.partition(': ')[2]}: {reason}"  # the queue is named once


def find_application(rm: ResourceManager, job_id: str, user: str) -> Application | None:
    """Return the newest application of ``user`` with the job's tag; None if there is none.

    After a lost reply there may be two. The active one is preferred, because it has the claim.
    """
    tag = tag_of(job_id)
    answer = rm.get(
        "/apps", applicationTags=tag, applicationTypes=TYPES, user=user, deSelects=ALL_DETAILS
    )
    tagged = [a for a in applications_of(answer) if a.user == user and tag in a.tags]
    return max(tagged, key=lambda app: (not app.ended, app.started), default=None)


def active_jobs(rm: ResourceManager) -> set[str]:
    """Return the ids of the jobs of all users with an application that has not ended."""
    answer = rm.get(
        "/apps",
        applicationTags=TAG,
        applicationTypes=TYPES,
        states=",".join(ACTIVE_STATES),
        deSelects=ALL_DETAILS,
    )
    prefix = tag_of("")
    return {
        tag.removeprefix(prefix)
        for app in applications_of(answer)
        for tag in app.tags
        if tag.startswith(prefix)
    }


def jobs_of(rm: ResourceManager, user: str) -> list[str]:
    """Return the ids of a user's jobs, newest first, that the ResourceManager lists."""
    answer = rm.get(
        "/apps",
        user=user,
        applicationTags=TAG,
        applicationTypes=TYPES,
        deSelects=ALL_DETAILS,
    )
    found = sorted(applications_of(answer), key=lambda app: app.started, reverse=True)
    return list(dict.fromkeys(app.job_id for app in found if app.user == user and app.job_id))


def needed_containers(app: Application) -> int:
    """Return the number of containers before the program can run, from the application's tags."""
    for tag in app.tags:
        count = tag.removeprefix(GANG_TAG)
        if tag.startswith(GANG_TAG) and count.isdecimal():
            return int(count) + 1
    return 2 if BESIDE_TAG in app.tags else 1


def application(rm: ResourceManager, application_id: str) -> Application | None:
    """Return an application by its id; None if the ResourceManager does not have it."""
    try:
        return application_of(rm.get(application_path(application_id)))
    except RefusedError:
        return None


def observation(rm: ResourceManager, app: Application, handle: Handle) -> Observation:
    """Return the observation of an application; request its attempt if its end is unclear."""
    state = app.state
    common: dict[str, Any] = {
        "handle": handle,
        "started": app.launched,
        "finished": app.finished,
        "links": links(rm, app, handle),
        "used": app.usage,
        "host": app.master_host or None,
        "container_id": app.master_container or None,
        "master_runs": state == "RUNNING",
    }
    queue = app.queue.removeprefix("root.")
    diagnostics = app.diagnostics
    if app.ended:
        reason, detail = _ending(rm, app)
        return Observation(Stage.ENDED, reason=reason, detail=detail, **common)
    needed = int(handle.get("containers") or (2 if handle.get("beside") else 1))
    if state != "RUNNING":
        if is_launched(diagnostics):
            # YARN localizes the files of the master's container, in which a single task runs too.
            stage = Stage.STARTING if needed == 1 else Stage.WAITING
            files = "" if needed > 1 else str(handle.get("localizing") or "")
            sentence = localizing_sentence([common["host"] or ""], _launched_for(app), files)
            sentence = (
                sentence
                if needed == 1
                else _("the application master is {state}").format(state=sentence)
            )
            return Observation(stage, pending=sentence, **common)
        return Observation(Stage.WAITING, pending=wait_reason(diagnostics, queue), **common)
    running = app.running_containers
    if needed > 1 and running < needed:
        pending = _("queue {queue}: the master runs; waiting for the program's container").format(
            queue=queue
        )
        if needed > 2:
            pending = _("queue {queue}: {running} of {needed} containers").format(
                queue=queue, running=max(0, running - 1), needed=needed - 1
            )
        return Observation(Stage.WAITING, pending=pending, **common)
    return Observation(Stage.RUNNING, **common)


def localizing_on(rm: ResourceManager, handle: Handle) -> tuple[str, float | None]:
    """Return a sentence on the localization of the other containers, and its start time."""
    name = str(handle["application_id"]).removeprefix("application_")
    # Only a gang has a second attempt, and its coordinator reports localization itself.
    try:
        answer = rm.get(containers_path(quote(name), 1))
    except RefusedError:
        answer = None
    found = [one for one in containers_of(answer) if not one.id.endswith("_000001")]
    nodes = [one.node for one in found]
    times = [one.started for one in found if one.started is not None]
    passed = max(time.time() - max(times), 0.0) if times else 0.0
    sentence = localizing_sentence(nodes, passed, str(handle.get("localizing") or ""))
    return sentence, max(times, default=None)


def _launched_for(app: Application) -> float:
    """Return the seconds since the launch of the master's container; 0 if unknown.

    YARN keeps the time of the first attempt only.
    """
    launched = app.launched
    if launched is None or app.master_container.split("_")[-2:-1] != ["01"]:
        return 0.0
    return max(time.time() - launched, 0.0)


def links(rm: ResourceManager, app: Application, handle: Handle) -> dict[str, str]:
    """Return label -> URL of the application's page, its job page and its master's log."""
    found = {"YARN application": f"{rm.url}/cluster/app/{quote(app.id)}"}
    if app.master_log:
        found["YARN log"] = app.master_log
    if app.tracking_url and app.state == "RUNNING":
        found["Spark page" if handle.get("spark") else "Job page"] = app.tracking_url
    return found


def _list(rm: ResourceManager, handles: Mapping[str, Handle]) -> list[Application]:
    query = {"applicationTypes": TYPES, "deSelects": ALL_DETAILS}
    if len(handles) <= _BY_NAME:
        query["applicationTags"] = ",".join(tag_of(job_id) for job_id in handles)
    else:
        query["applicationTags"] = TAG
        users = {str(handle.get("user") or "") for handle in handles.values()}
        if len(users) == 1 and users != {""}:
            query["user"] = users.pop()
        times = [float(h["submitted"]) for h in handles.values() if h.get("submitted")]
        if len(times) == len(handles):
            query["startedTimeBegin"] = str(int((min(times) - _SKEW) * 1000))
    return applications_of(rm.get("/apps", **query))


def is_submarine(app: Application) -> bool:
    """Return whether Submarine submitted an application."""
    return TAG in app.tags


def _ending(rm: ResourceManager, app: Application) -> tuple[EndReason, str]:
    reason, detail = end_reason(app.state, app.final_status, app.diagnostics)
    if reason in _VAGUE:
        # skein's message replaces that of YARN, which the attempt still has.
        text = _attempt_diagnostics(rm, app.id)
        clearer = end_reason(app.state, app.final_status, text) if text else (reason, detail)
        if clearer[0] not in _VAGUE:
            return clearer
        if app.preempted_masters or app.preempted_containers:
            return EndReason.PREEMPTED, _("The scheduler took a container of the job back.")
    return reason, detail


def _attempt_diagnostics(rm: ResourceManager, application_id: str) -> str:
    try:
        answer = rm.get(application_path(application_id, "appattempts"))
    except RefusedError:
        return ""
    return "\n".join(attempt_diagnostics(answer))
