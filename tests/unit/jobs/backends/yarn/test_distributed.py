"""A distributed job for YARN: its plan, its skein specification, its inputs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Plan, Submission
from submarine_jobs.backends.yarn.application import (
    containers_needed,
    coordinator_python as coordinatorpython,
)
from submarine_jobs.backends.yarn.application.distributed import Parts, build_gang
from submarine_jobs.backends.yarn.planning import AGENT_MEMORY, ClusterView, make_gang_plan
from submarine_jobs.backends.yarn.planning.distributed import COORDINATOR_MEMORY
from submarine_jobs.backends.yarn.planning.single import MASTER_MEMORY, Steps
from submarine_jobs.errors import UsageError
from submarine_jobs.inputs import NO_STORE_PATHS, resolve_store_paths
from submarine_jobs.model import (
    JobSpec,
    NamedInput,
    PackedEnvironment,
    Resources,
    Role,
    fill_spec,
    resolve_roles,
)
from submarine_jobs.storage import LocalStorage, hdfs_storage
from submarine_jobs.submit.configuration import coordinator_config, make_submission
from submarine_runtime.protocol import JobRecord, State
from tests.unit.jobs.backends.yarn.test_planning import leaf, res

QUEUES = [
    leaf("default", res(8192, 8, 4), absoluteMaxCapacity=100.0, nodeLabels=["*"]),
    leaf("half", res(8192, 8, 4), absoluteMaxCapacity=50.0, nodeLabels=["slow"]),
]
SCHEDULER = {"scheduler": {"schedulerInfo": {"queues": {"queue": QUEUES}}}}
NODE: dict[str, Any] = {"state": "RUNNING", "rack": "/r1", "totalResource": res(4096, 8, 2)}
NODES = {
    "nodes": {
        "node": [
            {**NODE, "nodeHostName": "one"},
            {**NODE, "nodeHostName": "two", "nodeLabels": ["fast"]},
        ]
    }
}


def plan(*roles: Role, queue: str | None = None, **view: Any) -> Plan:
    spec = JobSpec("x", "yarn", queue=queue, roles=roles)
    seen: dict[str, Any] = {
        "scheduler": SCHEDULER, "nodes": NODES, "steps": Steps(64, 64), "knows_gpus": True, **view,
    }  # fmt: skip
    return make_gang_plan(spec, ClusterView(**seen), "default")


def worker(count: int = 2, memory: int = 512, gpus: int = 0, **fields: Any) -> Role:
    return Role("worker", count, Resources(memory, 1, gpus), **fields)


def test_one_container_a_role_and_one_for_master_and_coordinator() -> None:
    found = plan(worker(3, gpus=1), Role("ps", 1, Resources(256)))
    assert found.errors == []
    master, workers, ps = found.containers
    assert master["memory"] >= MASTER_MEMORY + COORDINATOR_MEMORY
    assert master["gpus"] == 0
    assert (workers["role"], workers["count"], workers["gpus"]) == ("worker", 3, 1)
    assert workers["memory"] == -(-(512 + AGENT_MEMORY) // 64) * 64
    assert (ps["role"], ps["count"]) == ("ps", 1)


@pytest.mark.parametrize(
    ("role", "queue", "sentence"),
    [
        (worker(gpus=3), None, "asks for 3 GPUs, and the largest node has 2 GPUs"),
        (worker(memory=5000), None, "ask for less with --memory"),
        (worker(5, gpus=1), None, "at most 4 containers of .* fit on the cluster at once"),
        (worker(3, memory=2500), None, "at most 2 containers"),
        (worker(3, gpus=1), "half", "needs 3 GPUs at once, and queue half may ever hold 2"),
        (worker(4, memory=1000), "half", "MiB at once, and queue half may ever hold 4096 MiB"),
        (worker(10, memory=64), "half", "needs 11 vcores at once, and queue half"),
        (worker(node_label="gone"), None, "no running node has the label gone; .* are fast"),
        (worker(node_label="fast"), "half", "queue half may not use the label fast; it may: slow"),
        (worker(5, node_label="fast", gpus=1), None, "at most 2 containers"),
        (worker(nodes=("three",)), None, "no running node three; the cluster has one, two"),
        (worker(racks=("/r2",)), None, "no rack /r2; the cluster has /r1"),
        (worker(node_label="fast", nodes=("two",)), None, "not both"),
        (worker(), "none", "There is no queue none"),
    ],
)
def test_what_could_never_run_is_refused(role: Role, queue: str | None, sentence: str) -> None:
    (error,) = plan(role, queue=queue).errors
    assert re.search(sentence, error), error


def test_what_may_start_smaller_or_is_only_busy_is_not_refused() -> None:
    assert plan(worker(50, gpus=1, least=4)).errors == []
    board = Role("tensorboard", 1, Resources(256), kind="sidecar")
    assert plan(worker(4, gpus=1), board).errors == []
    # Without GPUs the scheduler may not count cores at all.
    many = plan(worker(16, memory=64), knows_gpus=False)
    assert many.errors == []
    busy = plan(Role("worker", 2, Resources(64, 8)), Role("ps", 1, Resources(64, 8)))
    assert busy.errors
    free = {**NODES["nodes"]["node"][0], "usedMemoryMB": 4096, "availMemoryMB": 0}
    assert plan(worker(1), nodes={"nodes": {"node": [free]}}).errors == []


def submission(tmp_path: Path, spec: JobSpec) -> Submission:
    directory = JobDirectory(LocalStorage(), str(tmp_path / "202611" / "x-20261121-0a1b"))
    record = JobRecord("x-20261121-0a1b", "x", State.PENDING, user="me", backend="yarn", created=1)
    seen = ClusterView(SCHEDULER, NODES, Steps(64, 64), True)
    return make_submission(
        spec, make_gang_plan(spec, seen, "default"), directory, record, intent="i",
        python="/usr/bin/python3", runtime_zip="/cache/runtime.zip", reached=NO_STORE_PATHS,
        environments={"worker": PackedEnvironment("hdfs://nn/cache/python-env-1.tar.gz")},
    )  # fmt: skip


def test_the_skein_specification(tmp_path: Path) -> None:
    roles = (
        worker(3, least=2, node_label="fast", docker_image="registry/tf:2.16"),
        Role("ps", 1, Resources(64), command="serve", kind="untracked", nodes=("one",), relax=True),
        Role("tensorboard", 1, Resources(64), command="board", kind="sidecar"),
    )
    tags = ("azkaban.flow.execid:17", "Azkaban.Flow.FlowId:Nightly", "submarine_gang:9")
    asked = JobSpec("x", "yarn", roles=roles, bundle_digest="d", yarn_tags=tags)
    made = submission(tmp_path, asked)
    assert containers_needed(made) == 4
    python = coordinatorpython.INTERPRETER
    parts = Parts(
        skein_jar="/cache/skein.jar", heartbeat_jar="/cache/beat.jar", jvm_options=("-Xa",),
        coordinator_python=python, coordinator_archive="/cache/coordinator-1.tar.gz",
        agent_python={"worker": "python3", "ps": python, "tensorboard": "/usr/bin/python3"},
        docker={"YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "/etc/passwd:/etc/passwd:ro"},
    )  # fmt: skip
    app = build_gang(made, parts)
    assert app.max_attempts == 2
    assert "submarine_gang:3" in app.tags
    # What YARN keeps in small letters is sent so; a foreign tag does not pass for one of ours.
    assert {"azkaban.flow.execid:17", "azkaban.flow.flowid:nightly"} < app.tags
    assert "submarine_gang:9" not in app.tags
    assert f"exec '{python}' -I runtime.zip supervise --directory ." in app.master.script
    assert "coordinator-python" in app.master.files
    assert "heartbeat.jar" in app.master.files
    assert "bundle.zip" not in app.master.files
    for service in app.services.values():
        assert (service.instances, service.max_restarts, service.allow_failures) == (0, 0, True)
        assert "secret.json" in service.files
    first, ps, board = (app.services[role.name] for role in roles)
    assert first.env == {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "registry/tf:2.16",
        "YARN_CONTAINER_RUNTIME_DOCKER_TMPFS_MOUNTS": "/dev/shm",
        "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "/etc/passwd:/etc/passwd:ro",
    }
    assert first.node_label == "fast"
    assert str(first.files["python-env.archive"].type).lower().endswith("file")
    assert ps.env == {}
    assert (ps.nodes, ps.relax_locality) == (["one"], True)
    assert "coordinator-python" in ps.files
    assert "python-env.archive" not in ps.files
    assert "coordinator-python" not in board.files
    everything = [app.master.script, *(service.script for service in app.services.values())]
    assert all("token" not in script for script in everything)


def test_orders_follow_from_framework_and_spec(tmp_path: Path) -> None:
    directory = JobDirectory(LocalStorage(), str(tmp_path))
    record = JobRecord("x-20261121-0a1b", "x", State.PENDING, backend="yarn")
    spec = JobSpec("x", "yarn", roles=(worker(), Role("ps", 1)), framework="tensorflow")
    spec = resolve_roles(spec)
    assert [role.kind for role in spec.roles] == ["tracked", "untracked"]
    orders = coordinator_config(spec, directory, record, "i")
    assert (orders.policy, orders.spec.max_restarts, orders.gang_timeout) == ("chief", None, 600.0)
    chosen = dataclasses.replace(spec, policy="all", max_restarts=0, gang_timeout=0.0)
    orders = coordinator_config(chosen, directory, record, "i")
    assert (orders.policy, orders.spec.max_restarts, orders.gang_timeout) == ("all", 0, None)


def test_a_framework_brings_the_roles_that_it_cannot_do_without() -> None:
    spec = JobSpec("x", "yarn", roles=(worker(2, gpus=1),), framework="mxnet")
    extra = resolve_roles(spec)
    assert [role.name for role in extra.roles] == ["worker", "scheduler"]
    scheduler = extra.roles[1]
    assert (scheduler.instances, scheduler.kind, scheduler.resources.gpus) == (1, "untracked", 0)
    assert resolve_roles(extra) == extra
    alone = dataclasses.replace(spec, roles=(worker(1),))
    assert resolve_roles(alone) == alone


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/x", "/data/x"),
        ("hdfs://nn:8020/data//x/", "/data/x"),
        ("hdfs://nn/data", "/data"),
        ("hdfs:///data", "/data"),
        ("hdfs://other:8020/data", None),
        ("s3a://bucket/data", None),
        ("HDFS://me@NN:8020/data?x=1#y", "/data?x=1#y"),
        ("webhdfs://nn:9870/data", None),
        ("data/x", None),
        ("file:///data", None),
    ],
)
def test_a_uri_as_a_path_of_the_clusters_store(uri: str, path: str | None) -> None:
    assert hdfs_storage("hdfs://nn:8020").path_of(uri) == path


def test_the_input_that_a_placeholder_means_comes_first(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    inputs = tuple(NamedInput(name.upper(), str(tmp_path / name)) for name in ("a", "b"))
    spec = JobSpec("x", "local", inputs=inputs, args=("%input_path%",))
    assert [item.name for item in resolve_store_paths(spec, LocalStorage(), "/").fetch] == [
        "A",
        "B",
    ]
    assert fill_spec(spec).args == ("%input_path%",)
    spec = dataclasses.replace(spec, input_path=str(tmp_path / "b"))
    assert [item.name for item in resolve_store_paths(spec, LocalStorage(), "/").fetch] == [
        "B",
        "A",
    ]
    spec = dataclasses.replace(spec, input_path="s3a://elsewhere")
    assert fill_spec(spec).args == ("s3a://elsewhere",)
    with pytest.raises(UsageError, match="is not a job id"):
        resolve_store_paths(dataclasses.replace(spec, resume_from="../x"), LocalStorage(), "/")


@pytest.mark.parametrize(
    ("changes", "role"),
    [
        ({"python_env": "docker:org/image"}, {}),
        ({}, {"python_env": "docker:org/image"}),
        ({"docker_image": "org/image"}, {}),
        ({"max_restarts": 2}, {}),
        ({}, {"node_label": "fast"}),
        ({}, {"instances": 2}),
    ],
)
def test_what_only_a_coordinator_can_do(changes: dict[str, Any], role: dict[str, Any]) -> None:
    assert not JobSpec("j", "yarn").distributed
    assert JobSpec("j", "yarn", roles=(Role(**role),), **changes).distributed
