"""One question for any number of jobs, and what is asked beyond it."""

from __future__ import annotations

import time
from typing import Any

from submarine_jobs.backends.base import Stage
from submarine_jobs.backends.yarn.observe import find, observe
from submarine_runtime.protocol.reasons import EndReason


class Recorder:
    """Answers like a ResourceManager that knows some applications, and counts."""

    url = "http://rm:8088"

    def __init__(self, *apps: dict[str, Any]) -> None:
        self.apps = {app["id"]: app for app in apps}
        self.listed = set(self.apps)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.attempts: dict[str, str] = {}

    def get(self, path: str, **query: str) -> Any:
        self.asked.append((path, query))
        if path == "/apps":
            return {"apps": {"app": [self.apps[i] for i in self.listed]}}
        identity = path.split("/")[2]
        if path.endswith("/appattempts"):
            words = self.attempts.get(identity, "")
            return {"appAttempts": {"appAttempt": [{"diagnosticsInfo": words}]}}
        return {"app": self.apps[identity]} if identity in self.apps else None


def app(identity: str, state: str = "RUNNING", final: str = "UNDEFINED", **more: Any) -> Any:
    return {
        "id": identity,
        "user": "me",
        "state": state,
        "finalStatus": final,
        "queue": "root.ml",
        "diagnostics": "",
        "amContainerLogs": f"http://nm:8042/node/containerlogs/container_{identity}/me",
        "amHostHttpAddress": "nm:8042",
        **more,
    }


def handle(identity: str, **more: Any) -> dict[str, Any]:
    return {"application_id": identity, "submitted": time.time(), **more}


def job(number: int) -> str:
    return f"j-20261121-{number:04x}"


def test_one_question_however_many_jobs() -> None:
    for count in (1, 40, 500):
        rm = Recorder(*(app(f"application_1_{n:04}") for n in range(count)))
        handles = {job(n): handle(f"application_1_{n:04}") for n in range(count)}
        seen = observe(rm, handles)  # type: ignore[arg-type]
        assert {o.stage for o in seen.values()} == {Stage.RUNNING}
        ((path, query),) = rm.asked
        assert path == "/apps"
        assert query["deSelects"] == "resourceRequests"
        assert len(query["applicationTags"]) < 5000
        assert ("startedTimeBegin" in query) == (count > 40)


def test_nothing_to_look_at_asks_nothing() -> None:
    rm = Recorder()
    assert observe(rm, {}) == {}  # type: ignore[arg-type]
    assert rm.asked == []


def test_unknown_is_said_only_after_asking_by_name() -> None:
    rm = Recorder(app("application_1_0001"))
    rm.listed = set()
    handles = {job(1): handle("application_1_0001"), job(2): handle("application_1_0002")}
    seen = observe(rm, handles)  # type: ignore[arg-type]
    assert seen[job(1)].stage is Stage.RUNNING
    assert seen[job(2)].stage is Stage.UNKNOWN
    assert len(rm.asked) == 3


def test_what_the_observation_holds() -> None:
    rm = Recorder(app("application_1_0001", launchTime=5000, memorySeconds=7, vcoreSeconds=2))
    seen = observe(rm, {job(1): handle("application_1_0001")})[job(1)]  # type: ignore[arg-type]
    assert seen.host == "nm"
    assert seen.container_id == "container_application_1_0001"
    assert seen.started == 5.0
    assert seen.used["memory_seconds"] == 7
    assert seen.links["YARN application"] == "http://rm:8088/cluster/app/application_1_0001"


def test_a_task_beside_its_master_waits_for_its_container() -> None:
    rm = Recorder(app("application_1_0001", runningContainers=1))
    beside = handle("application_1_0001", beside=True)
    seen = observe(rm, {job(1): beside})[job(1)]  # type: ignore[arg-type]
    assert seen.stage is Stage.WAITING
    assert "ml" in seen.pending


def test_the_attempts_words_clear_up_a_vague_ending() -> None:
    rm = Recorder(app("application_1_0001", "FINISHED", "FAILED", diagnostics="Failure in service"))
    rm.attempts["application_1_0001"] = "exited with exitCode: -102 preempted by scheduler"
    seen = observe(rm, {job(1): handle("application_1_0001")})[job(1)]  # type: ignore[arg-type]
    assert seen.reason is EndReason.PREEMPTED
    rm.attempts.clear()
    rm.apps["application_1_0001"]["numNonAMContainerPreempted"] = 1
    seen = observe(rm, {job(1): handle("application_1_0001")})[job(1)]  # type: ignore[arg-type]
    assert seen.reason is EndReason.PREEMPTED


def test_another_users_tag_is_not_ours() -> None:
    tag = f"submarine,submarine_job:{job(1)}"
    stranger = app("application_1_0009", applicationTags=tag, startedTime=9, user="eve")
    rm = Recorder(stranger, app("application_1_0001", applicationTags=tag, startedTime=5))
    found = find(rm, job(1), "me")  # type: ignore[arg-type]
    assert found is not None
    assert found["id"] == "application_1_0001"
