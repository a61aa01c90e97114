"""What a poll asks a ResourceManager that answers by HTTP and counts: two questions at most."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import GpuHolder, NodeUse, Observation, Overview, Stage, located_gpus
from submarine_jobs.backends.yarn.cluster import (
    APPS,
    NODES,
    ResourceManager,
    Survey,
    Waits,
    cache as answers,
    overview_of,
)
from submarine_runtime.cluster_http import simple_access
from submarine_server.handlers.cluster import OwnJob, cluster_json

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The simulated cluster of the benchmark: its GPUs are held by others."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    made = importlib.import_module("simulated_cluster").ResourceManager()
    sys.modules.pop("simulated_cluster")
    yield made
    made.close()


class Polls:
    """Looks at all jobs of the cluster, and counts what each look asks."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        rm = ResourceManager(
            [f"http://127.0.0.1:{cluster.port}"], timeout=20.0, access=simple_access("ada")
        )
        self.waits = Waits(rm, "ada")
        self._survey = Survey(rm, self.waits, "ada")

    def look(self, shown: list[str]) -> tuple[dict[str, Observation], Counter[str]]:
        self._cluster.asked.clear()
        every = {**self._cluster.apps, **self._cluster.waiting}
        handles = {job_id: {"application_id": identity} for identity, job_id in every.items()}
        seen = self._survey.poll(handles, shown)
        return seen, Counter(self._cluster.asked)


def reuse(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set for how long answers are reused."""
    monkeypatch.setattr(answers, "FRESH", seconds)
    monkeypatch.setattr(answers, "lifetime", lambda entries: seconds)


def numbered(first: int, count: int) -> dict[str, str]:
    return {
        f"application_1_{number:04}": f"j-20261122-{number:04x}"
        for number in range(first, first + count)
    }


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [0.0, 1000.0], ids=["all is old", "all is fresh"])
def test_a_poll_is_two_questions_whatever_waits_on_display(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, fresh: float
) -> None:
    reuse(monkeypatch, fresh)
    cluster.apps, cluster.waiting = numbered(0, 200), numbered(200, 30)
    shown = [*list(cluster.apps.values())[:20], *cluster.waiting.values()]
    polls = Polls(cluster)
    for number in range(12):
        # As with pages that come and go: nothing, some that run, some that wait.
        seen, asked = polls.look([[], shown, shown[:10], shown][number % 4])
        assert sum(asked.values()) <= (2 if number % 4 else 1), (number, asked)
        assert asked["/apps"] == 1
        assert Counter(found.stage for found in seen.values()) == {
            Stage.RUNNING: 200,
            Stage.WAITING: 30,
        }


@pytest.mark.slow
def test_a_wait_on_display_is_explained_within_a_few_polls(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reuse(monkeypatch, 1000.0)
    cluster.waiting = numbered(3, 1)
    (waiting,) = cluster.waiting.values()
    polls = Polls(cluster)
    asked: Counter[str] = Counter()
    for _ in range(4):
        seen, more = polls.look([waiting])
        asked += more
    assert asked == {"/apps": 4, "/scheduler": 3, "/nodes": 1}
    assert seen[waiting].pending == (
        'queue default has 0 of 8 GPUs free, application "gobbler" of root holds 6, '
        '2 are reserved for application "second" of root'
    )
    # No viewer any more: nothing is requested that only an explanation needs.
    seen, asked = polls.look([])
    assert asked == {"/apps": 1}
    assert "gobbler" not in seen[waiting].pending


@pytest.mark.slow
def test_ends_take_the_scheduler_s_place_and_cost_nothing_later(cluster: Any) -> None:
    cluster.apps = numbered(0, 300)
    polls = Polls(cluster)
    polls.look([])
    ended = numbered(0, 1)
    cluster.apps = numbered(1, 299)
    handles = {job_id: {"application_id": identity} for identity, job_id in ended.items()}
    cluster.asked.clear()
    polls._survey.poll(handles)
    # The list, the missing ones by their tags, and the unknown one by its name.
    assert cluster.asked == {"/apps": 2, "/apps/application_1_0000": 1}
    cluster.asked.clear()
    polls._survey.poll(handles)
    assert cluster.asked == {"/apps": 1}


@pytest.mark.slow
def test_an_application_that_lost_its_tag_costs_no_question_either(cluster: Any) -> None:
    cluster.apps = numbered(0, 3)
    (lost,) = numbered(7, 1)
    cluster.others.append(
        stray := {**cluster.app(lost, "nobody", "RUNNING"), "applicationTags": ""}
    )
    cluster.singles[lost] = stray
    polls = Polls(cluster)
    handles = {job_id: {"application_id": identity} for identity, job_id in cluster.apps.items()}
    handles["j-20261122-0007"] = {"application_id": lost}
    polls._survey.poll(handles)
    for _ in range(3):
        cluster.asked.clear()
        seen = polls._survey.poll(handles)
        assert {found.stage for found in seen.values()} == {Stage.RUNNING}
        assert cluster.asked == {"/apps": 1}


@pytest.mark.slow
def test_a_view_of_the_cluster_names_the_holders_without_a_request(cluster: Any) -> None:
    cluster.apps = numbered(0, 2)
    polls = Polls(cluster)
    polls.waits.cache.mark_viewed()
    _, asked = polls.look([])
    assert asked == {"/apps": 1, "/scheduler": 1}
    cached = polls.waits.cache
    found = overview_of(cached.get("scheduler"), cached.get(NODES), cached.latest(APPS))
    (holder,) = found.holders
    assert (holder.name, holder.user, holder.queue) == ("gobbler", "root", "default")
    assert (holder.job_id, holder.gpus) == ("", {"": 6})
    told = cluster_json("yarn", found, user="ada")
    assert told["holders"] == [
        {
            "application_id": "application_1795240772280_0004",
            "job_id": None,
            "name": "gobbler",
            "user": "root",
            "queue": "default",
            "gpus": 6,
            "hosts": ["localhost"],
            "mine": False,
        }
    ]
    assert {tuple(node["held_by"]) for node in told["nodes"]} == {
        ("application_1795240772280_0004",)
    }


WAITS = Path(__file__).parents[1] / "yarn/recorded/waits.json.gz"


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        # The queue holds 6 GPUs and has 2 reserved; nothing else holds any.
        ("gpu-all-held", {"default": (0, 8, 2), "gpu": (2, 8, 0), "narrow": (2, 8, 0)}),
        ("gpu-master-waits", {"default": (0, 8, 3), "gpu": (2, 8, 0), "narrow": (2, 8, 0)}),
        ("masters-share", {"default": (8, 8, 0), "gpu": (8, 8, 0), "narrow": (8, 8, 1)}),
        # The queue gpu may hold 4 and does.
        ("queue-limit", {"default": (4, 8, 0), "gpu": (0, 4, 0), "narrow": (4, 8, 1)}),
    ],
)
def test_what_is_free_in_a_queue_is_not_held_by_another_one(
    scene: str, expected: dict[str, tuple[int, int, int]]
) -> None:
    """GPUs free and in all, and applications that wait, by queue."""
    said = json.loads(gzip.decompress(WAITS.read_bytes()))[scene]
    told = cluster_json("yarn", overview_of(said["scheduler"], said["nodes"], said["apps"]))
    found = {
        queue["name"]: (queue["gpus_free"], queue["gpus_total"], queue["pending"])
        for queue in told["queues"]
    }
    assert found == expected
    # Before anybody's applications are known, the scheduler's own numbers say that some wait.
    early = overview_of(said["scheduler"], said["nodes"]).queues
    assert {queue.name for queue in early if queue.pending} == {
        name for name, (_, _, pending) in expected.items() if pending
    }


def test_gpus_of_labelled_nodes_are_free_for_queues_that_may_use_them() -> None:
    def gpus(count: int) -> dict[str, Any]:
        return {"resourceInformations": {"resourceInformation": [_gpu(count)]}}

    def queue(name: str, most: dict[str, int], used: dict[str, int]) -> dict[str, Any]:
        shares = [
            {"partitionName": label, "effectiveMaxResource": gpus(count)}
            for label, count in most.items()
        ]
        parts = [{"partitionName": label, "used": gpus(count)} for label, count in used.items()]
        return {
            "queueName": name,
            "capacities": {"queueCapacitiesByPartition": shares},
            "resources": {"resourceUsagesByPartition": parts},
            "resourcesUsed": gpus(used.get("", 0)),
        }

    nodes = [
        {"state": "RUNNING", "totalResource": gpus(4), "usedResource": gpus(0)},
        {
            "state": "RUNNING",
            "nodeLabels": ["fast"],
            "totalResource": gpus(8),
            "usedResource": gpus(8),
        },
    ]
    below = queue("below", {"": 4, "fast": 8}, {})
    parent = {**queue("above", {"": 1, "fast": 8}, {}), "queues": {"queue": [below]}}
    leaves = [queue("plain", {"": 4}, {}), queue("fast", {"fast": 8}, {"fast": 8}), parent]
    scheduler = {"scheduler": {"schedulerInfo": {"queues": {"queue": leaves}}}}
    found = overview_of(scheduler, {"nodes": {"node": nodes}}).queues
    assert [(one.name, one.gpus_free, one.gpus_total, one.gpus_used) for one in found] == [
        ("plain", 4, 4, 0),
        ("fast", 0, 8, 8),
        ("below", 1, 12, 0),
    ]


def test_a_queue_of_the_fair_scheduler_has_no_more_than_the_cluster_and_its_parent() -> None:
    def gpus(count: int) -> dict[str, Any]:
        return {"resourceInformations": {"resourceInformation": [_gpu(count)]}}

    nodes = [{"state": "RUNNING", "totalResource": gpus(8), "usedResource": gpus(5)}]
    one = {"queueName": "root.a.b", "maxResources": gpus(8), "usedResources": gpus(0)}
    two = {"queueName": "root.c", "maxResources": gpus(8), "usedResources": gpus(5)}
    above = {
        "queueName": "root.a",
        "maxResources": gpus(1),
        "usedResources": gpus(0),
        "childQueues": {"queue": [one]},
    }
    root = {"queueName": "root", "childQueues": {"queue": [above, two]}}
    scheduler = {"scheduler": {"schedulerInfo": {"rootQueue": root}}}
    waits = {
        "queue": "root.a.b",
        "resourceInfo": {"resourceUsagesByPartition": [{"pending": gpus(2)}]},
    }
    apps = {"apps": {"app": [waits, {"queue": "root.c", "resourceInfo": None}]}}
    found = overview_of(scheduler, {"nodes": {"node": nodes}}, apps).queues
    assert [(one.name, one.gpus_free, one.pending) for one in found] == [("a.b", 1, 1), ("c", 3, 0)]


def _gpu(count: int) -> dict[str, Any]:
    return {"name": "yarn.io/gpu", "value": count}


def node(host: str, used: int, *labels: str) -> NodeUse:
    return NodeUse(host=host, gpus_total=8, gpus_used=used, labels=labels)


def holder(identity: str, count: int, label: str = "", job_id: str = "") -> GpuHolder:
    return GpuHolder(identity, gpus={label: count}, job_id=job_id)


def test_only_certain_holders_of_gpus_are_named() -> None:
    a, b, fast = node("a", 2), node("b", 4), node("c", 1, "fast")
    one, two = holder("app1", 2), holder("app2", 4)
    # Either might be on either.
    assert located_gpus(Overview(nodes=(a, b), holders=(one, two)), {}) == {}
    # One says where it is; then so is the other.
    assert located_gpus(Overview(nodes=(a, b), holders=(one, two)), {"app1": {"a": 2}}) == {
        "b": ["app2"]
    }
    # All on one host, or one on all.
    assert located_gpus(Overview(nodes=(node("a", 6),), holders=(two, one)), {}) == {
        "a": ["app1", "app2"]
    }
    assert located_gpus(Overview(nodes=(a, b), holders=(holder("x", 6),)), {}) == {
        "a": ["x"],
        "b": ["x"],
    }
    # Labels are looked at by themselves.
    fine = Overview(nodes=(a, b, fast), holders=(one, two, holder("app3", 1, "fast")))
    assert located_gpus(fine, {}) == {"c": ["app3"]}
    # Answers of two moments, or a record that is old.
    assert located_gpus(Overview(nodes=(a,), holders=(two,)), {}) == {}
    assert located_gpus(Overview(nodes=(a, b), holders=(one, two)), {"app1": {"a": 3}}) == {}
    assert located_gpus(Overview(nodes=(a, b), holders=(one, two)), {"app1": {"z": 2}}) == {}


def test_jobs_are_named_by_their_ids_and_untrusted_text_is_sanitized() -> None:
    evil = GpuHolder(
        "application_1_2",
        name="<b>\n\x1b[31m" + "x" * 500,
        user="eve\x00",
        queue="gpu",
        job_id="j-20261122-0002",
        gpus={"": 1},
    )
    mine = OwnJob("j-20261122-0001", "application_1_1", {"a": 2})
    own = GpuHolder("application_1_1", user="ada", job_id="j-20261122-0001", gpus={"": 2})
    told = cluster_json("yarn", Overview(nodes=(node("a", 3),), holders=(own, evil)), [mine], "ada")
    assert told["nodes"][0]["held_by"] == ["j-20261122-0001", "j-20261122-0002"]
    first, second = told["holders"]
    assert (first["mine"], first["hosts"]) == (True, ["a"])
    assert (second["mine"], second["hosts"], second["job_id"]) == (False, ["a"], "j-20261122-0002")
    assert all(text.isprintable() and len(text) <= 200 for text in (second["name"], second["user"]))
