"""One question for any number of jobs, and what is asked beyond it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.backends.yarn.cluster import Waits, find_application, localizing_on, observe
from submarine_jobs.errors import ClusterError
from submarine_runtime.protocol import EndReason
from tests.unit.yarn.recorded_waits import recorded_waits


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
        assert query["deSelects"] == "resourceRequests,timeouts,resourceInfo"
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


LAUNCHED = "AM container is launched, waiting for AM container to Register with RM"


def test_a_container_whose_files_are_brought_there_is_not_in_the_queue() -> None:
    container = "http://nm:8042/node/containerlogs/container_1_0001_01_000001/me"
    began = (time.time() - 95) * 1000
    told: dict[str, Any] = {
        "diagnostics": LAUNCHED,
        "launchTime": int(began),
        "amContainerLogs": container,
    }
    rm = Recorder(app("application_1_0001", "ACCEPTED", **told))
    one = handle("application_1_0001", localizing="Python environment (1.4 GB)")
    seen = observe(rm, {job(1): one})[job(1)]  # type: ignore[arg-type]
    assert seen.stage is Stage.STARTING
    assert seen.started == pytest.approx(began / 1000, abs=0.01)
    assert seen.pending == "localizing on nm for 1 min 30 s: Python environment (1.4 GB)"
    # A master that localizes has no container for the program yet.
    gang = handle("application_1_0001", containers=3, localizing="Python environment (1.4 GB)")
    seen = observe(rm, {job(1): gang})[job(1)]  # type: ignore[arg-type]
    words = "the application master is localizing on nm for 1 min 30 s"
    assert (seen.stage, seen.pending) == (Stage.WAITING, words)
    # The ResourceManager keeps the time of the first attempt only.
    again: dict[str, Any] = {
        **told,
        "amContainerLogs": container.replace("_01_000001", "_02_000001"),
    }
    rm = Recorder(app("application_1_0001", "ACCEPTED", **again))
    seen = observe(rm, {job(1): one})[job(1)]  # type: ignore[arg-type]
    assert seen.pending == "localizing on nm: Python environment (1.4 GB)"
    waits = "Application is Activated, waiting for resources to be assigned for AM."
    rm = Recorder(app("application_1_0001", "ACCEPTED", diagnostics=waits))
    assert observe(rm, {job(1): one})[job(1)].stage is Stage.WAITING  # type: ignore[arg-type]


def test_containers_beside_a_master_say_where_they_are_localized() -> None:
    began = int((time.time() - 25) * 1000)
    identity = "container_1_0001_01_00000"
    granted = {"containerId": f"{identity}2", "nodeId": "nm:1", "startedTime": began}
    master = {"containerId": f"{identity}1", "nodeId": "am:1"}
    answer: Any = {"container": [master, granted]}

    class Master(Recorder):
        def get(self, path: str, **query: str) -> Any:
            attempt = "/apps/application_1_0001/appattempts/appattempt_1_0001_000001"
            assert path == f"{attempt}/containers"
            return answer

    found = handle("application_1_0001", localizing="1 file of --localization (2 GB)")
    words, since = localizing_on(Master(), found)  # type: ignore[arg-type]
    assert words == "localizing on nm for 20 s: 1 file of --localization (2 GB)"
    assert since == began / 1000
    answer = None  # before Hadoop 3 there is no such page
    assert localizing_on(Master(), handle("application_1_0001")) == ("localizing", None)  # type: ignore[arg-type]


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
    found = find_application(rm, job(1), "me")  # type: ignore[arg-type]
    assert found is not None
    assert found.id == "application_1_0001"


class Busy(Recorder):
    """Also answers what a ResourceManager said while its GPUs were held."""

    def __init__(self, *apps: dict[str, Any]) -> None:
        super().__init__(*apps)
        self.recorded = recorded_waits("gpu-all-held")

    def get(self, path: str, **query: str) -> Any:
        if path in ("/scheduler", "/nodes"):
            self.asked.append((path, query))
            return self.recorded[path[1:]]
        if path == "/apps" and "deSelects" in query and "applicationTags" not in query:
            self.asked.append((path, query))
            return self.recorded["apps"]
        return super().get(path, **query)


def waiting(number: int, state: str = "ACCEPTED", **more: Any) -> dict[str, Any]:
    request = {
        "resourceName": "*",
        "numContainers": 1,
        "capability": {
            "memory": 1024,
            "vCores": 1,
            "resourceInformations": {
                "resourceInformation": [{"name": "yarn.io/gpu", "value": 1}],
            },
        },
    }
    tag = f"submarine,submarine_job:{job(number)}"
    fields = {"queue": "root.default", "applicationTags": tag, "resourceRequests": [request]}
    return app(f"application_1_{number:04}", state, **{**fields, **more})


def test_a_waiting_job_names_the_holders_of_its_resources() -> None:
    rm = Busy(waiting(0), waiting(1, "RUNNING", runningContainers=2), app("application_1_0002"))
    handles = {
        job(0): handle("application_1_0000"),
        job(1): handle("application_1_0001", containers=4),
        job(2): handle("application_1_0002"),
    }
    waits = Waits(rm, "me")  # type: ignore[arg-type]
    found = observe(rm, handles, waits)  # type: ignore[arg-type]
    why = (
        'queue default has 0 of 8 GPUs free, application "gobbler" of root holds 6, '
        '2 are reserved for application "second" of root'
    )
    assert found[job(0)].pending == why
    assert found[job(1)].pending == f"1 of 3 containers: {why}"
    assert found[job(2)].pending == ""
    # The list, the cluster in three questions, and what these two ask for; the cluster's answers
    # are good for a while.
    assert len(rm.asked) == 5
    observe(rm, handles, waits)  # type: ignore[arg-type]
    assert len(rm.asked) == 7


def test_a_wait_that_cannot_be_explained_keeps_yarns_words() -> None:
    class Deaf(Busy):
        def get(self, path: str, **query: str) -> Any:
            if path == "/nodes":
                raise ClusterError("it does not answer")
            return super().get(path, **query)

    rm = Deaf(waiting(0, diagnostics="AM container to be launched, waiting for AM container"))
    found = observe(rm, {job(0): handle("application_1_0000")}, Waits(rm, "me"))  # type: ignore[arg-type]
    assert found[job(0)].pending.startswith("the container is allocated")
