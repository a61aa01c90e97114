"""The doctor's checks against set-ups that are wrong in one way each."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.commands import result_lines
from submarine_jobs.doctor import (
    CHECKS,
    Check,
    DoctorContext,
    Finding,
    Status,
    cluster,
    gpu,
    hadoop,
    machine,
    node,
    ok,
    run_checks,
)
from submarine_jobs.doctor.cuda_probe import cuda_in
from submarine_jobs.errors import ClusterError, ConfigError
from submarine_jobs.model import Profile


class ResourceManager:
    """Answers as a ResourceManager does; ``answers`` and ``skew`` may be changed by a test."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/ws/v1/cluster/info": {"clusterInfo": {"hadoopVersion": "3.5.0"}},
            "/ws/v1/cluster/nodes": nodes(gpus=2),
            "/ws/v1/cluster/scheduler": scheduler("default", "ml"),
        }
        self.skew = 0.0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = outer.answers.get(self.path.partition("?")[0])
                body = json.dumps(answer).encode()
                self.send_response_only(200 if answer is not None else 404)
                self.send_header("Date", formatdate(time.time() + outer.skew, usegmt=True))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def nodes(gpus: int) -> dict[str, Any]:
    resources = [{"name": "yarn.io/gpu", "value": gpus}] if gpus else []
    total = {
        "memory": 8192,
        "vCores": 8,
        "resourceInformations": {"resourceInformation": resources},
    }
    return {"nodes": {"node": [{"state": "RUNNING", "totalResource": total}]}}


def scheduler(*names: str) -> dict[str, Any]:
    leaves = [
        {"type": "capacitySchedulerLeafQueueInfo", "queueName": name, "state": "RUNNING"}
        for name in names
    ]
    info = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": leaves}}
    return {"scheduler": {"schedulerInfo": info}}


@pytest.fixture
def rm() -> Iterator[ResourceManager]:
    server = ResourceManager()
    yield server
    server.close()


def site(**values: str) -> str:
    entries = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    return f"<configuration>{entries}</configuration>"


def context(
    directory: Path,
    rm: ResourceManager | None = None,
    yarn: Any = None,
    **core: str,
) -> DoctorContext:
    """A patient with a configuration directory made for the test."""
    core.setdefault("fs.defaultFS", "hdfs://127.0.0.1:1")
    address = rm.address if rm else "127.0.0.1:1"
    settings = {"yarn.resourcemanager.webapp.address": address, **(yarn or {})}
    (directory / "core-site.xml").write_text(site(**core))
    (directory / "hdfs-site.xml").write_text(site(**{"dfs.namenode.http-address": address}))
    (directory / "yarn-site.xml").write_text(site(**settings))
    profile = Profile(
        backend="yarn",
        hadoop_conf_dir=directory,
        state_dir=directory / "state",
        timeout=5.0,
        user="alice",
    )
    return DoctorContext(profile, {})


@pytest.mark.slow
def test_a_check_that_hangs_or_breaks_does_not_stop_the_others() -> None:
    def hang(_: DoctorContext) -> Finding:
        time.sleep(90)
        raise AssertionError

    def broken(_: DoctorContext) -> Finding:
        facts: dict[str, str] = {}
        return ok(facts["gone"])

    def refused(_: DoctorContext) -> Finding:
        raise ClusterError("It is down.", "Start it.")

    checks = [
        Check("hangs", hang, seconds=0.3),
        Check("broken", broken),
        Check("refused", refused),
        Check("good", lambda _: ok("Fine.")),
        Check("on nodes", broken, node=True, client=False),
    ]
    started = time.monotonic()
    results = run_checks(DoctorContext(Profile()), checks)
    assert time.monotonic() - started < 60
    assert [result.name for result in results] == ["hangs", "broken", "refused", "good"]
    assert [str(result.status) for result in results] == ["error", "error", "error", "ok"]
    assert "0.3 s" in results[0].sentence
    assert "KeyError" in results[1].sentence
    assert (results[2].sentence, results[2].fix) == ("It is down.", "Start it.")


@pytest.mark.slow
def test_a_check_is_not_run_when_one_that_it_needs_found_an_error() -> None:
    run: list[str] = []

    def refused(_: DoctorContext) -> Finding:
        time.sleep(0.2)
        raise ClusterError("It is down.", "Start it.")

    def look(_: DoctorContext) -> Finding:
        run.append("run")
        return ok("Fine.")

    checks = [
        Check("first", refused),
        Check("second", look, needs=("first", "not among the checks")),
        Check("third", look, needs=("second",)),
    ]
    first, second, third = run_checks(DoctorContext(Profile()), checks)
    assert (first.status, first.fix) == (Status.ERROR, "Start it.")
    because = "Not checked, because `first` found an error."
    assert (second.status, second.sentence) == (Status.SKIPPED, because)
    assert third.status is Status.OK
    assert run == ["run"]


def test_every_check_comes_after_those_that_it_needs() -> None:
    before: set[str] = set()
    for check in CHECKS:
        assert set(check.needs) <= before, check.name
        before.add(check.name)


@pytest.mark.parametrize(
    ("backend", "words"),
    [("local", "runs jobs on this machine"), ("slurm", "runs jobs on the backend slurm")],
)
def test_a_profile_without_yarn_says_where_jobs_run(backend: str, words: str) -> None:
    seen = DoctorContext(Profile(backend=backend), {})
    assert hadoop.configured(seen).status is Status.OK
    assert words.split()[-1] in hadoop.configured(seen).sentence
    assert words in seen.no_cluster


@pytest.mark.parametrize("on_node", [False, True])
def test_a_missing_cluster_is_one_finding_with_its_fix(on_node: bool) -> None:
    results = run_checks(DoctorContext(Profile(), {}), CHECKS, node=on_node)
    lines = result_lines(results)
    about = [n for n, line in enumerate(lines) if "o cluster is configured" in line]
    assert len(about) == 2, lines
    assert lines[about[0]].startswith("warning  profile ")
    fix = lines[about[0] + 1]
    for way in ("HADOOP_CONF_DIR", "hadoop_conf_dir", "--profile minicluster", "--backend local"):
        assert way in fix
    unchecked = {check.name for check in CHECKS if check.cluster}
    unchecked &= {result.name for result in results}
    listed = lines[about[1]].partition("because no cluster is configured: ")[2].rstrip(".")
    assert set(listed.split(", ")) == unchecked
    assert len(unchecked) > 10


def test_an_unreachable_cluster_is_one_finding(tmp_path: Path) -> None:
    chosen = ("hadoop configuration", "ports", "resource manager", "queues", "capacity", "hdfs")
    results = run_checks(context(tmp_path), [check for check in CHECKS if check.name in chosen])
    lines = result_lines(results)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "ok",
        "error",
        "skipped",
    ], lines
    assert f"HADOOP_CONF_DIR or hadoop_conf_dir ({tmp_path})" in lines[2]
    assert lines[3].endswith("`ports` found an error: resource manager, queues, capacity, hdfs.")


def test_a_broken_configuration_is_one_finding(tmp_path: Path) -> None:
    gone = Profile(backend="yarn", hadoop_conf_dir=tmp_path / "gone")
    results = run_checks(DoctorContext(gone, {}), CHECKS)
    wrong = [result for result in results if "core-site.xml" in result.sentence]
    assert [result.name for result in wrong] == ["hadoop configuration"]
    assert "HADOOP_CONF_DIR" in wrong[0].fix
    assert {r.name: r for r in results}["names"].status is not Status.ERROR


@pytest.mark.slow
def test_every_finding_that_is_not_good_has_a_fix(tmp_path: Path) -> None:
    for place in (Profile(), Profile(backend="local"), context(tmp_path).profile):
        for on_node in (False, True):
            results = run_checks(DoctorContext(place, {}), CHECKS, node=on_node)
            assert [
                r.name for r in results if r.status in (Status.ERROR, Status.WARNING) and not r.fix
            ] == []
            assert all(result.sentence for result in results)


def test_configuration_directories(tmp_path: Path, rm: ResourceManager) -> None:
    good = context(tmp_path, rm)
    assert hadoop.configuration(good).status is Status.OK
    (tmp_path / "yarn-env.sh").touch()
    (tmp_path / "yarn-env.sh").chmod(0o666)
    finding = hadoop.configuration(good)
    assert finding.status is Status.WARNING
    assert f"{tmp_path}/yarn-env.sh can be changed by every user" in finding.sentence
    assert finding.fix == f"Run `chmod go-w {tmp_path}/yarn-env.sh`."
    (tmp_path / "yarn-env.sh").unlink()
    unset = context(tmp_path, yarn={"yarn.resourcemanager.webapp.address": "0.0.0.0:8088"})
    assert "where the ResourceManager is" in hadoop.configuration(unset).sentence
    (tmp_path / "hdfs-site.xml").unlink()
    assert "has no hdfs-site.xml" in hadoop.configuration(good).sentence
    (tmp_path / "core-site.xml").unlink()
    with pytest.raises(ConfigError, match=r"holds no core-site\.xml"):
        hadoop.configuration(DoctorContext(good.profile, {}))


def test_resource_types(tmp_path: Path, rm: ResourceManager) -> None:
    looked = hadoop.resource_types(context(tmp_path, rm))
    assert looked.status is Status.ERROR
    assert "resource-types.xml" in looked.sentence
    (tmp_path / "resource-types.xml").write_text(site(**{"yarn.resource-types": "yarn.io/gpu"}))
    assert hadoop.resource_types(context(tmp_path, rm)).status is Status.OK
    rm.answers["/ws/v1/cluster/nodes"] = nodes(gpus=0)
    assert "--gpu will be refused" in hadoop.resource_types(context(tmp_path, rm)).sentence


def test_resourcemanager_and_clock(tmp_path: Path, rm: ResourceManager) -> None:
    assert "Hadoop 3.5.0: 1 nodes" in cluster.resourcemanager(context(tmp_path, rm)).sentence
    assert cluster.clock(context(tmp_path, rm)).status is Status.OK
    rm.skew = 90
    skewed = cluster.clock(context(tmp_path, rm))
    assert skewed.status is Status.WARNING
    assert "behind" in skewed.sentence
    rm.answers["/ws/v1/cluster/nodes"] = {"nodes": None}
    assert cluster.resourcemanager(context(tmp_path, rm)).status is Status.ERROR
    with pytest.raises(ClusterError):
        cluster.resourcemanager(context(tmp_path))


def test_queues(tmp_path: Path, rm: ResourceManager) -> None:

    found = context(tmp_path, rm)
    assert "default, ml" in cluster.queues(found).sentence
    wrong = DoctorContext(replace(found.profile, queue="gone"), {})
    assert "There is no queue gone; there are default, ml" in cluster.queues(wrong).sentence
    assert cluster.queues(DoctorContext(replace(found.profile, queue="ml"), {})).status is Status.OK


def test_ports(tmp_path: Path, rm: ResourceManager) -> None:
    some = cluster.ports(context(tmp_path, rm))
    assert some.status is Status.WARNING
    assert "NameNode 127.0.0.1:1" in some.sentence
    assert cluster.ports(context(tmp_path)).status is Status.ERROR
    assert (
        cluster.ports(context(tmp_path, rm, **{"fs.defaultFS": f"hdfs://{rm.address}"})).status
        is Status.OK
    )


def test_webhdfs(tmp_path: Path, rm: ResourceManager) -> None:
    assert cluster.webhdfs(context(tmp_path, rm)).status is Status.ERROR
    rm.answers["/webhdfs/v1/"] = {"FileStatus": {"type": "DIRECTORY"}}
    assert cluster.webhdfs(context(tmp_path, rm)).status is Status.OK
    off = cluster.webhdfs(context(tmp_path, rm, **{"dfs.webhdfs.enabled": "false"}))
    assert "switched off" in off.sentence
    found = context(tmp_path, rm, **{"dfs.webhdfs.enabled": "false"})
    gateway = replace(found.profile, settings={"httpfs": f"http://{rm.address}"})
    assert cluster.webhdfs(DoctorContext(gateway, {})).status is Status.OK
    gateway = replace(found.profile, settings={"httpfs": "http://127.0.0.1:1"})
    closed = cluster.webhdfs(DoctorContext(gateway, {}))
    assert (closed.status, "httpfs" in closed.fix) == (Status.ERROR, True)


@pytest.mark.parametrize(
    ("version", "status"),
    [("17.0.9", "ok"), ("1.8.0_402", "ok"), ("11.0.2", "ok"), ("9.0.1", "warning")],
)
def test_java(version: str, status: str, tmp_path: Path) -> None:

    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    profile = replace(context(tmp_path).profile, java_home=home)
    assert str(machine.java(DoctorContext(profile, {})).status) == status
    with pytest.raises(ClusterError, match="is not a Java"):
        machine.java(DoctorContext(replace(profile, java_home=tmp_path), {}))


def test_proxies() -> None:
    assert machine.proxies(DoctorContext(Profile(), {})).status is Status.OK
    assert (
        machine.proxies(DoctorContext(Profile(), {"HTTPS_PROXY": "http://p"})).status
        is Status.WARNING
    )
    exempt = {"http_proxy": "http://p", "no_proxy": "localhost,127.0.0.1"}
    assert machine.proxies(DoctorContext(Profile(), exempt)).status is Status.OK


def test_the_jobs_python(tmp_path: Path) -> None:
    assert machine.job_python(DoctorContext(Profile(python=sys.executable))).status is Status.OK
    gone = Profile(python=str(tmp_path / "python"), python_env="path:/x", backend="yarn")
    assert "doctor --node" in machine.job_python(DoctorContext(gone)).fix
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3 6\n")
    old.chmod(0o755)
    assert (
        "is Python 3.6, and jobs need"
        in machine.job_python(DoctorContext(Profile(python=str(old)))).sentence
    )


def test_state_directory(tmp_path: Path) -> None:
    good = Profile(state_dir=tmp_path / "a" / "b")
    assert machine.state_directory(DoctorContext(good)).status is Status.OK
    assert not (tmp_path / "a").exists()


_NM = "yarn.nodemanager"


def test_container_executor(tmp_path: Path) -> None:
    gpus = {f"{_NM}.resource-plugins": "yarn.io/gpu"}
    assert node.container_executor(context(tmp_path)).status is Status.OK
    assert (
        "every job sees every GPU" in node.container_executor(context(tmp_path, yarn=gpus)).sentence
    )
    binary = tmp_path / "container-executor"
    linux = {
        f"{_NM}.container-executor.class": "org.apache.LinuxContainerExecutor",
        f"{_NM}.linux-container-executor.path": str(binary),
    }
    assert "is not there" in node.container_executor(context(tmp_path, yarn=linux)).sentence
    binary.write_text("")
    assert "set-uid" in node.container_executor(context(tmp_path, yarn=linux)).sentence


def test_cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {f"{_NM}.resource.memory.enabled": "true"}
    assert node.cgroups(context(tmp_path)).status is Status.OK
    monkeypatch.setattr(node, "CGROUPS", tmp_path / "cgroup")
    assert "not mounted" in node.cgroups(context(tmp_path, yarn=wanted)).sentence
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "cgroup.controllers").write_text("cpu memory")
    assert "v2 only" in node.cgroups(context(tmp_path, yarn=wanted)).sentence
    told = {**wanted, f"{_NM}.linux-container-executor.cgroups.v2.enabled": "true"}
    assert node.cgroups(context(tmp_path, yarn=told)).status is Status.OK
    gpus = {**told, f"{_NM}.resource.memory.enabled": "false"}
    gpus[f"{_NM}.resource-plugins"] = "yarn.io/gpu"
    found = node.cgroups(context(tmp_path, yarn=gpus))
    assert found.status is Status.WARNING
    assert "no settings for cgroups" in found.sentence


def test_memory_checks_and_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert node.memory_checks(context(tmp_path)).status is Status.WARNING
    off = {f"{_NM}.vmem-check-enabled": "false"}
    assert node.memory_checks(context(tmp_path, yarn=off)).status is Status.OK
    assert node.docker(context(tmp_path)).status is Status.SKIPPED
    allowed = {f"{_NM}.runtime.linux.allowed-runtimes": "default,docker"}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no docker command" in node.docker(context(tmp_path, yarn=allowed)).sentence


def test_node_directories(tmp_path: Path) -> None:
    assert node.local_directories(context(tmp_path)).status is Status.SKIPPED
    there = {f"{_NM}.local-dirs": f"file://{tmp_path}"}
    assert node.local_directories(context(tmp_path, yarn=there)).status in (Status.OK, Status.ERROR)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "OrderedDict([('cuda_compute_capabilities', ['sm_60']), ('cuda_version', '12.5.1')])",
            "12.5.1",
        ),
        ("cuda: Optional[str] = '12.4'\nhip: Optional[str] = None", "12.4"),
        ("cuda = '11.8'", "11.8"),
        ("cuda: Optional[str] = None", None),
        ("OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])", None),
    ],
)
def test_cuda_of_a_build(text: str, version: str | None) -> None:
    assert cuda_in(text) == version


def test_gpu_driver_against_frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def look(frameworks: dict[str, str | None], driver: str | None) -> Finding:
        answer = json.dumps({"frameworks": frameworks, "driver": driver})
        python = program("python", f"echo '{answer}'")
        return gpu.driver(DoctorContext(Profile(python=str(python))))

    monkeypatch.setenv("PATH", str(tmp_path))  # a machine with GPUs has an nvidia-smi elsewhere
    assert look({}, None).status is Status.SKIPPED
    program("nvidia-smi", "echo 'NVIDIA H200, 550.54, 143771 MiB'")
    assert look({"tensorflow": "12.5.1"}, "12.4").status is Status.OK
    old = look({"tensorflow": "12.5.1"}, "11.8")
    assert old.status is Status.ERROR
    assert "built for CUDA 12.5.1, and the driver offers 11.8" in old.sentence
    assert look({"tensorflow": None}, "12.4").status is Status.WARNING
    program("nvidia-smi", "echo 'Driver/library version mismatch'; exit 18")
    assert "version mismatch" in look({}, "12.4").sentence
