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
from submarine_jobs.backends.yarn.cluster.cache import ACTIVE_STATES
from submarine_jobs.backends.yarn.cluster.diagnostics import end_reason, is_launched, wait_reason
from submarine_jobs.backends.yarn.cluster.pending_reasons import Waits
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.backends.yarn.cluster.tags import BESIDE_TAG, GANG_TAG, TAG, tag_of
from submarine_jobs.errors import RefusedError
from submarine_runtime.protocol import EndReason
from submarine_runtime.translation import _
from submarine_runtime.yarn import localizing_sentence

#: Maximum number of jobs that are requested by their own tags; more are requested by ``TAG``.
_BY_NAME = 40
_ENDED = frozenset(("FINISHED", "FAILED", "KILLED"))
_SKEW = 3600.0
_VAGUE = frozenset((EndReason.MASTER_LOST, EndReason.AGENT_LOST))


def observe(
    rm: ResourceManager, handles: Mapping[str, Handle], waits: Waits | None = None
) -> dict[str, Observation]:
    """Return an observation of each job; ``waits`` explains those that wait."""
    if not handles:
        return {}
    listed = {str(app.get("id")): app for app in _list(rm, handles)}
    found: dict[str, Observation] = {}
    waiting: dict[str, Mapping[str, Any]] = {}
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
    waiting: Mapping[str, Mapping[str, Any]],
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
        if (reason := reasons.get(str(app.get("id"))))
    }


def _pending(observed: Observation, app: Mapping[str, Any], reason: str) -> str:
    """Return the reason, after the number of allocated containers if there are some."""
    if app.get("state") != "RUNNING":
        return reason
    return f"{observed.pending.partition(': ')[2]}: {reason}"  # the queue is named once


def find_application(rm: ResourceManager, job_id: str, user: str) -> Mapping[str, Any] | None:
    """Return the newest application of ``user`` with the job's tag; None if there is none.

    After a lost reply there may be two. The active one is preferred, because it has the claim.
    """
    answer = rm.get("/apps", applicationTags=tag_of(job_id), applicationTypes="skein")
    tag = tag_of(job_id)
    tagged = [a for a in listed_applications(answer) if a.get("user") == user and tag in _tags(a)]
    return max(
        tagged,
        key=lambda app: (app.get("state") not in _ENDED, int(app.get("startedTime") or 0)),
        default=None,
    )


def active_jobs(rm: ResourceManager) -> set[str]:
    """Return the ids of the jobs of all users with an application that has not ended."""
    answer = rm.get(
        "/apps",
        applicationTags=TAG,
        applicationTypes="skein",
        states=ACTIVE_STATES,
        deSelects="resourceRequests,timeouts",
    )
    prefix = tag_of("")
    return {
        tag.removeprefix(prefix)
        for app in listed_applications(answer)
        for tag in _tags(app)
        if tag.startswith(prefix)
    }


def containers_of(app: Mapping[str, Any]) -> int:
    """Return the number of containers before the program can run, from the application's tags."""
    for tag in _tags(app):
        count = tag.removeprefix(GANG_TAG)
        if tag.startswith(GANG_TAG) and count.isdecimal():
            return int(count) + 1
    return 2 if BESIDE_TAG in _tags(app) else 1


def application(rm: ResourceManager, application_id: str) -> Mapping[str, Any] | None:
    """Return an application by its id; None if the ResourceManager does not have it."""
    try:
        answer = rm.get(f"/apps/{quote(application_id)}")
    except RefusedError:
        return None
    app = (answer or {}).get("app")
    return app if isinstance(app, Mapping) else None


def observation(rm: ResourceManager, app: Mapping[str, Any], handle: Handle) -> Observation:
    """Return the observation of an application; request its attempt if its end is unclear."""
    state = str(app.get("state"))
    common: dict[str, Any] = {
        "handle": handle,
        "started": _seconds(app.get("launchTime")),
        "finished": _seconds(app.get("finishedTime")),
        "links": links(rm, app),
        "used": {
            "memory_seconds": int(app.get("memorySeconds") or 0),
            "vcore_seconds": int(app.get("vcoreSeconds") or 0),
            "gpu_seconds": _gpu_seconds(app),
        },
        "host": str(app.get("amHostHttpAddress") or "").partition(":")[0] or None,
        "container_id": _master_container(app),
        "master_runs": state == "RUNNING",
    }
    queue = str(app.get("queue") or "").removeprefix("root.")
    diagnostics = str(app.get("diagnostics") or "")
    if state in _ENDED:
        reason, detail = _ending(rm, app, state, diagnostics)
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
    running = int(app.get("runningContainers") or 0)
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
    path = f"/apps/application_{quote(name)}/appattempts/appattempt_{quote(name)}_000001/containers"
    try:
        answer = rm.get(path)
    except RefusedError:
        answer = None
    raw = (answer or {}).get("container") or []
    found = [one for one in (raw if isinstance(raw, list) else [raw]) if isinstance(one, Mapping)]
    found = [one for one in found if not str(one.get("containerId")).endswith("_000001")]
    nodes = [str(one.get("nodeId") or "") for one in found]
    times = [began for one in found if (began := _seconds(one.get("startedTime")))]
    passed = max(time.time() - max(times), 0.0) if times else 0.0
    sentence = localizing_sentence(nodes, passed, str(handle.get("localizing") or ""))
    return sentence, max(times, default=None)


def _launched_for(app: Mapping[str, Any]) -> float:
    """Return the seconds since the launch of the master's container; 0 if unknown.

    YARN keeps the time of the first attempt only.
    """
    launched, container = _seconds(app.get("launchTime")), _master_container(app) or ""
    if launched is None or container.split("_")[-2:-1] != ["01"]:
        return 0.0
    return max(time.time() - launched, 0.0)


def links(rm: ResourceManager, app: Mapping[str, Any]) -> dict[str, str]:
    """Return label -> URL of the application's page, its job page and its master's log."""
    found = {"YARN application": f"{rm.url}/cluster/app/{quote(str(app.get('id')))}"}
    logs = str(app.get("amContainerLogs") or "")
    if logs.startswith(("http://", "https://")):
        found["YARN log"] = logs
    tracking = str(app.get("trackingUrl") or "")
    if tracking.startswith(("http://", "https://")) and app.get("state") == "RUNNING":
        found["Job page"] = tracking
    return found


def _list(rm: ResourceManager, handles: Mapping[str, Handle]) -> list[Mapping[str, Any]]:
    query = {"applicationTypes": "skein", "deSelects": "resourceRequests"}
    if len(handles) <= _BY_NAME:
        query["applicationTags"] = ",".join(tag_of(job_id) for job_id in handles)
    else:
        query["applicationTags"] = TAG
        times = [float(h["submitted"]) for h in handles.values() if h.get("submitted")]
        if len(times) == len(handles):
            query["startedTimeBegin"] = str(int((min(times) - _SKEW) * 1000))
    return listed_applications(rm.get("/apps", **query))


def listed_applications(answer: Any) -> list[Mapping[str, Any]]:
    """Return the applications of a response to ``/apps``."""
    return list(((answer or {}).get("apps") or {}).get("app") or [])


def is_submarine(app: Mapping[str, Any]) -> bool:
    """Return whether Submarine submitted an application."""
    return TAG in _tags(app)


def _tags(app: Mapping[str, Any]) -> list[str]:
    return str(app.get("applicationTags") or "").split(",")


def _ending(
    rm: ResourceManager, app: Mapping[str, Any], state: str, diagnostics: str
) -> tuple[EndReason, str]:
    final = str(app.get("finalStatus"))
    reason, detail = end_reason(state, final, diagnostics)
    if reason in _VAGUE:
        # skein's message replaces that of YARN, which the attempt still has.
        text = _attempt_diagnostics(rm, str(app.get("id")))
        clearer = end_reason(state, final, text) if text else (reason, detail)
        if clearer[0] not in _VAGUE:
            return clearer
        if int(app.get("numAMContainerPreempted") or 0) or int(
            app.get("numNonAMContainerPreempted") or 0
        ):
            return EndReason.PREEMPTED, _("The scheduler took a container of the job back.")
    return reason, detail


def _attempt_diagnostics(rm: ResourceManager, application_id: str) -> str:
    try:
        answer = rm.get(f"/apps/{quote(application_id)}/appattempts")
    except RefusedError:
        return ""
    attempts = ((answer or {}).get("appAttempts") or {}).get("appAttempt") or []
    return "\n".join(str(a.get("diagnosticsInfo") or "") for a in attempts)


def _master_container(app: Mapping[str, Any]) -> str | None:
    _, found, rest = str(app.get("amContainerLogs") or "").partition("/containerlogs/")
    return rest.partition("/")[0] if found else None


def _seconds(milliseconds: Any) -> float | None:
    value = int(milliseconds or 0)
    return value / 1000 if value > 0 else None


def _gpu_seconds(app: Mapping[str, Any]) -> int:
    raw = app.get("resourceSecondsMap")
    entries = raw.get("entry") if isinstance(raw, Mapping) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("key") == "yarn.io/gpu":
            return int(entry.get("value") or 0)
    return 0
