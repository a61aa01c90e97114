"""The active daemon of a pair ends while a job is submitted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import DriverChannel
from submarine_jobs.client import Session
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from submarine_runtime.yarn import nodes_of
from tests.cluster.ha.conftest import application_ids
from tests.cluster.jobs.training import check_result, program, whole_log, workers
from tests.submission import Submit, submitting
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

RM = "resourcemanager"


@pytest.mark.parametrize(
    ("kind", "moment"),
    [(RM, "before"), (RM, "hanging"), (RM, "accepted"), ("namenode", "before")],
)
def test_a_submission_during_a_failover_runs_once(
    both: Minicluster,
    ha_profile: Profile,
    measure: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    moment: str,
) -> None:
    """The intent is published; the active daemon ends before, while or after it gets the job."""
    profile = replace(ha_profile, timeout=60.0)
    session, watcher = Session(profile), YarnBackend(profile)
    watcher.rm.get("/scheduler")
    real = DriverChannel.submit
    calls: list[str] = []
    failing: list[threading.Thread] = []

    def fail_over() -> None:
        if moment == "hanging":
            time.sleep(1)
        if moment == "accepted":
            before = {app["id"] for app in applications}
            until(lambda: [app for app in known() if app["id"] not in before], "the application")
        both.fail_over(kind)

    def known() -> list[dict[str, Any]]:
        return list(((watcher.rm.get("/apps") or {}).get("apps") or {}).get("app") or [])

    applications = known()

    def during(channel: DriverChannel, spec: Any, timeout: float) -> str:
        calls.append("submit")
        if len(calls) == 1:
            if moment == "before":
                both.kill(both.active(kind))
            if moment == "hanging":
                both.kill(both.active(kind), signal.SIGSTOP)
            failing.append(threading.Thread(target=fail_over))
            failing[0].start()
        return real(channel, spec, timeout)

    monkeypatch.setattr(DriverChannel, "submit", during)
    gang = {"roles": workers(2), "policy": "all", "framework": "any"}
    with submitting(session, backend="yarn", **gang) as submit:
        job = measure(f"submission, {kind} {moment}", lambda: submit("print('ran', flush=True)"))
        failing[0].join(120)
        assert not failing[0].is_alive()
        assert job.wait(timeout=180).state is State.SUCCEEDED, job.record().detail
    assert [whole_log(job, f"worker:{index}") for index in (0, 1)] == ["ran\n", "ran\n"]
    assert len(application_ids(job)) == 1


def test_without_an_active_one_a_submission_ends_with_a_sentence(
    both: Minicluster, ha_profile: Profile, measure: Callable[..., Any]
) -> None:
    session = Session(replace(ha_profile, timeout=8.0))
    session.backend("yarn").prepare()
    both.kill(both.active(RM))
    with submitting(session, backend="yarn") as submit:
        with pytest.raises(SubmarineError) as refused:
            measure("error", lambda: submit("print('ran')"))
        both.fail_over(RM)
        assert "ResourceManager" in str(refused.value), refused.value
        assert len(str(refused.value).splitlines()) <= 2
        # Until its nodes have registered, the new ResourceManager cannot run a job.
        rm = YarnBackend(ha_profile).rm
        until(lambda: nodes_of(rm.get("/nodes")), "the nodes")
        assert submit("print('ran')").wait(timeout=180).state is State.SUCCEEDED


def test_jobs_are_submitted_while_the_first_of_each_pair_is_the_standby(
    both: Minicluster, submit: Submit, measure: Callable[..., Any]
) -> None:
    for kind in ("namenode", "resourcemanager"):
        if both.active(kind) == kind:
            both.fail_over(kind)
        assert both.active(kind) == f"{kind}-2"
    both.start()
    assert [both.active(kind) for kind in ("namenode", "resourcemanager")] == [
        "namenode-2",
        "resourcemanager-2",
    ]
    gang = {"roles": workers(2), "policy": "all", "framework": "any"}
    training = measure("submission", lambda: submit(program(20), "gang", **gang))
    single = submit("print('ran', flush=True)", "single")
    for job in (training, single):
        assert job.wait(timeout=180).state is State.SUCCEEDED, job.record().events[-8:]
    check_result(training, 20)
    assert whole_log(single, "worker:0") == "ran\n"
