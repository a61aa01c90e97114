"""From ``submarine kernel install`` to the request to YARN."""

from __future__ import annotations

import asyncio
import errno
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import Plan
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.application import coordinator_python as coordinatorpython
from submarine_jobs.backends.yarn.application.distributed import Parts, build_gang
from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_jobs.errors import ClusterError, SubmarineError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import KERNEL_ROLE, JobSpec
from submarine_kernel.remote import (
    KernelRequest,
    PendingStart,
    StartProgress,
    acquisition,
    program,
    run_options,
    spec_of_kernel,
)
from submarine_kernel.remote.start_progress import dialog_error
from submarine_runtime.protocol import IdleLimit
from tests.frontends import RecordingFrontend
from tests.unit.jobs.backends.yarn.test_distributed import submission


def installed(tmp_path: Path, *words: str) -> dict[str, Any]:
    """Install a kernel with these options; return the provisioner's configuration."""
    install = ["kernel", "install", "--prefix", str(tmp_path), "--name", "gpu"]
    path = Path(execute([*install, *words], Frontend()).value["path"])
    stanza = json.loads((path / "kernel.json").read_text())["metadata"]["kernel_provisioner"]
    assert stanza["provisioner_name"] == "submarine-yarn"
    config: dict[str, Any] = stanza["config"]
    return config


def spec_for(tmp_path: Path, *words: str) -> JobSpec:
    """Return the specification of the kernel's job."""
    run = installed(tmp_path, *words)["run"]
    request = KernelRequest("gpu", run)
    config = load_config(run_options(request).config_options)
    return spec_of_kernel(config.profile, request, program())


def test_size_queue_and_priority_of_the_container(tmp_path: Path) -> None:
    words = ["--memory", "8G", "--vcores", "2", "--gpu", "4", "--queue", "ml", "--priority", "3"]
    words += ["--idle-gpu", "2h:end"]
    spec = spec_for(tmp_path, *words, "--python-env", "path:/opt/env")
    assert not spec.distributed
    (role,) = spec.roles
    size = role.resources
    assert (size.memory, size.vcores, size.gpus) == (8192, 2, 4)
    assert (spec.queue, spec.priority, spec.python_env) == ("ml", 3, "path:/opt/env")
    assert spec.name == "kernel-gpu"
    assert spec.idle_gpu == IdleLimit(7200.0, "end")


def test_a_kernelspec_names_secrets() -> None:
    request = KernelRequest("gpu", {"memory": "8G", "secret": ["HF_TOKEN", "KEY=/etc/key"]})
    spec = spec_of_kernel(load_config({"backend": "yarn"}).profile, request, program())
    assert spec.secrets == {"HF_TOKEN": "", "KEY": "/etc/key"}


def test_the_request_to_yarn_has_the_label_and_the_image(tmp_path: Path) -> None:
    words = ["--memory", "500M", "--gpu", "2", "--node-label", "fast"]
    spec = spec_for(tmp_path, *words, "--docker-image", "registry/kernel:1")
    assert spec.distributed
    # Only the owner restarts a kernel.
    assert spec.max_restarts == 0
    python = coordinatorpython.INTERPRETER
    parts = Parts(
        skein_jar="/cache/skein.jar",
        heartbeat_jar="/cache/beat.jar",
        jvm_options=(),
        coordinator_python=python,
        coordinator_archive="/cache/coordinator-1.tar.gz",
        agent_python={KERNEL_ROLE: "python3"},
        docker={
            "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "/etc/passwd:/etc/passwd:ro,/data:/data:rw",
            "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "host",
        },
    )
    service = build_gang(submission(tmp_path, spec), parts).services[KERNEL_ROLE]
    assert service.node_label == "fast"
    assert service.resources.gpus == 2
    assert service.resources.memory >= 500
    # The names and forms of Hadoop's page "Launching Applications Using Docker Containers".
    assert {name: service.env[name] for name in service.env if "RUNTIME" in name} == {
        "YARN_CONTAINER_RUNTIME_TYPE": "docker",
        "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "registry/kernel:1",
        "YARN_CONTAINER_RUNTIME_DOCKER_TMPFS_MOUNTS": "/dev/shm",
        "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "/etc/passwd:/etc/passwd:ro,/data:/data:rw",
        "YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK": "host",
    }


@pytest.fixture(autouse=True)
def _on_yarn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUBMARINE_BACKEND", "yarn")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--node", "one", "--node", "two"], "nodes", ("one", "two")),
        (["--rack", "/r1"], "racks", ("/r1",)),
        (["--avoid-node", "two"], "avoid", ("two",)),
    ],
)
def test_places(tmp_path: Path, words: list[str], field: str, value: object) -> None:
    (role,) = spec_for(tmp_path, *words).roles
    assert getattr(role, field) == value


def test_time_limits_are_settings_of_the_provisioner(tmp_path: Path) -> None:
    config = installed(tmp_path, "--idle-timeout", "20m", "--start-timeout", "2h")
    assert config == {"run": {}, "idle_timeout": "20m", "start_timeout": "2h"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--memory", "8G", "--gpu", "4", "--queue", "ml"], "Python (8G, 4 GPUs, queue ml)"),
        (["--gpu", "1", "--node-label", "fast"], "Python (1 GPU, label fast)"),
        (["--docker-image", "team/kernel:1"], "Python (image team/kernel:1)"),
        (["--vcores", "2"], "Python (container)"),
    ],
)
def test_the_display_name_has_the_size(tmp_path: Path, words: list[str], shown: str) -> None:
    install = ["kernel", "install", "--prefix", str(tmp_path), "--name", "gpu", *words]
    assert execute(install, Frontend()).value["display_name"] == shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gpu", "-1"], "gpu"),
        (["--memory", "lots"], "lots"),
        (["--idle-timeout", "soon"], "--idle-timeout: 'soon'"),
        (["--gpu", "1", "--idle-gpu", "1h:stop"], "'stop' is not one of warn, end"),
        (["--memory", "1G", "--idle-gpu", "1h:end"], "--idle-gpu needs a job with GPUs"),
        (["--memory", "1G", "--display-name", "  "], "--display-name"),
        (["--memory", "1G", "--set", "queue=ml"], "--set and --default are for"),
    ],
)
def test_invalid_options_are_rejected_at_install(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        installed(tmp_path, *words)


def _answers(monkeypatch: pytest.MonkeyPatch, plan: Plan | SubmarineError) -> None:
    """Let the cluster answer each request with ``plan``."""

    def plan_of(_backend: YarnBackend, _spec: JobSpec) -> Plan:
        if isinstance(plan, SubmarineError):
            raise plan
        return plan

    monkeypatch.setattr(YarnBackend, "plan", plan_of)


@pytest.mark.parametrize(
    ("plan", "warning"),
    [
        (Plan("", [], errors=["There is no queue ml; this cluster has a."]), "no queue ml"),
        (ClusterError("The cluster does not answer."), "No cluster could check it"),
        (Plan("", [], warnings=["The job will wait."]), ""),
    ],
)
def test_a_rejection_by_the_cluster_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan | SubmarineError, warning: str
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    site = "<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:1</value>"
    (conf / "core-site.xml").write_text(f"{site}</property></configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    _answers(monkeypatch, plan)
    frontend = RecordingFrontend()
    words = ["--prefix", str(tmp_path), "--name", "gpu4", "--gpu", "4", "--queue", "ml"]
    value = execute(["kernel", "install", *words], frontend).value
    assert (Path(value["path"]) / "kernel.json").is_file()
    assert [warning in line for line in frontend.said] == ([True] if warning else [])
    assert [warning in line for line in value["warnings"]] == ([True] if warning else [])


def test_install_without_a_cluster_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBMARINE_BACKEND")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    frontend = RecordingFrontend()
    words = ["--prefix", str(tmp_path), "--name", "gpu4", "--gpu", "4"]
    execute(["kernel", "install", *words], frontend)
    assert "No cluster is configured" in frontend.said[0]


def test_packing_an_environment_is_logged_once_for_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def submit(_session: object, _request: KernelRequest, progress: Any) -> None:
        for done in (0, 50, 100):
            progress("packing", done, 100)
            statuses.append(start.status)
        progress("uploading", 100, 100)
        raise ClusterError("HDFS is away.")

    monkeypatch.setattr(acquisition, "submit_kernel", submit)
    lines: list[str] = []
    statuses: list[str] = []
    none: Any = None
    start = PendingStart("gpu", "a.ipynb")
    progress = StartProgress(start, lines.append, terminal=False)
    with pytest.raises(ClusterError, match="HDFS is away"):
        asyncio.run(acquisition.get_kernel(none, KernelRequest("gpu", {}), {}, progress))
    # The status has the percentage.
    assert statuses[0].startswith("Packing this environment: 0 %")
    assert statuses[-1].startswith("Packing this environment: 100 %")
    assert start.status.startswith("Uploading the environment: 100 %")
    assert len(lines) == 2
    assert lines[0].startswith("Packing this environment")
    assert lines[1].startswith("Uploading the environment")


def test_a_full_disk_is_one_sentence_in_the_dialog() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/state/jobs.sqlite")
    for error in (full, sqlite3.OperationalError("database or disk is full")):
        words = str(dialog_error(error))
        assert "cannot be used" in words
        assert "full" in words or "No space left" in words
        # One sentence a line: JupyterLab's dialog does not wrap lines.
        assert "\nCheck rights and free space" in words
    for other in (ConnectionResetError("gone"), TimeoutError(), ValueError("x")):
        assert dialog_error(other) is other
