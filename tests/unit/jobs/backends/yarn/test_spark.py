"""Spark jobs: the arguments of spark-submit, the driver's program, plans, and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.backends import Plan, Submission
from submarine_jobs.backends.yarn.planning import ClusterView, make_spark_plan
from submarine_jobs.backends.yarn.planning.single import Steps
from submarine_jobs.backends.yarn.spark import (
    driver_program as template,
    find_spark,
    kerberos_refusal,
    refusal_of,
    spark_arguments,
)
from submarine_jobs.backends.yarn.spark.arguments import DISCOVERY_SCRIPT, driver_program
from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.model import JobSpec, Localization, Profile, Resources, Role, SparkRequest
from submarine_jobs.storage import LocalStorage
from submarine_jobs.submit.runtime_zip import runtime_zip
from submarine_runtime.agent.program.ending import ProgramFacts, determine_ending
from submarine_runtime.protocol import EndReason, Failure, JobStore
from tests.configurations import make_agent_config

CAPTURED = Path(__file__).with_name("spark_submit")


def submission(job_dir: str, request: SparkRequest, **fields: Any) -> Submission:
    roles = (Role(resources=Resources(1024, 2, fields.pop("gpus", 0))),)
    spec = JobSpec(name="etl", backend="yarn", spark=request, roles=roles, **fields)
    agent = make_agent_config(job_id="etl-20261128-0001", backend="yarn", python="/opt/py")
    return Submission(spec, Plan("", []), LocalStorage(), job_dir, agent, "/x/cache/r.zip")


def words_of(made: Submission, **options: Any) -> list[str]:
    return spark_arguments(
        made,
        replace(made.agent, spec=made.spec),
        directory=Path("/tmp/d"),
        archive="hdfs:///cache/spark.zip",
        agent_python="/opt/agent",
        queue="default",
        **options,
    )


def settings_of(words: list[str]) -> dict[str, str]:
    pairs = pairwise(words)
    return dict(value.split("=", 1) for word, value in pairs if word == "--conf")


def value_of(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_the_arguments_name_sizes_queue_and_what_submarine_controls() -> None:
    request = SparkRequest(3, Resources(2048, 2), {"spark.sql.shuffle.partitions": "8"})
    words = words_of(submission("/jobs/etl", request, queue="gpu", env={"A": "1"}))
    assert words[:4] == ["--master", "yarn", "--deploy-mode", "cluster"]
    assert words[-1] == "/tmp/d/submarine_driver.py"
    for option, value in (
        ("--queue", "gpu"),
        ("--driver-memory", "1024m"),
        ("--driver-cores", "2"),
        ("--executor-memory", "2048m"),
        ("--executor-cores", "2"),
        ("--num-executors", "3"),
        ("--files", "file:///x/cache/r.zip#runtime.zip,file:///jobs/etl/bundle.zip#bundle.zip"),
    ):
        assert value_of(words, option) == value
    conf = settings_of(words)
    assert conf["spark.yarn.maxAppAttempts"] == "1"
    assert conf["spark.yarn.stagingDir"] == "file:///jobs/etl/spark"
    assert conf["spark.yarn.tags"] == "submarine,submarine_job:etl-20261128-0001"
    assert conf["spark.pyspark.driver.python"] == "/opt/agent"
    assert conf["spark.pyspark.python"] == "/opt/py"
    assert conf["spark.executorEnv.A"] == "1"
    assert conf["spark.executorEnv.PYTHONPATH"] == "{{PWD}}/bundle.zip"
    assert conf["spark.sql.shuffle.partitions"] == "8"
    assert conf["spark.driver.memoryOverhead"] == f"{384 + 96 + 512}m"
    assert not [key for key in conf if "gpu" in key or "LOCAL_IP" in key]


def test_settings_of_the_user_do_not_replace_those_of_submarine() -> None:
    request = SparkRequest(conf={"spark.yarn.maxAppAttempts": "9"})
    assert settings_of(words_of(submission("/j", request)))["spark.yarn.maxAppAttempts"] == "1"


def test_spark_tries_the_ports_of_the_range_in_order() -> None:
    request = SparkRequest(conf={"spark.blockManager.port": "30000"})
    made = submission("/j", request)
    conf = settings_of(words_of(made))
    assert "spark.driver.port" not in conf
    made.agent.port_range = "20000-20100"
    conf = settings_of(words_of(made))
    assert conf["spark.driver.port"] == "20000"
    assert conf["spark.port.maxRetries"] == "100"
    assert conf["spark.blockManager.port"] == "30000", "the user's settings have precedence"


def test_gpus_of_driver_and_executors_are_discovered_by_a_script() -> None:
    words = words_of(submission("/j", SparkRequest(resources=Resources(1024, 4, 2)), gpus=1))
    conf = settings_of(words)
    assert conf["spark.driver.resource.gpu.amount"] == "1"
    assert conf["spark.executor.resource.gpu.amount"] == "2"
    assert conf["spark.executor.resource.gpu.discoveryScript"] == "./submarine_gpus.sh"
    assert conf["spark.task.resource.gpu.amount"] == "1"
    assert value_of(words, "--files").endswith(",/tmp/d/submarine_gpus.sh")
    assert "spark.yarn.resourceGpuDeviceName" not in conf


def test_spark_requests_gpus_by_the_name_of_the_cluster() -> None:
    made = submission("/j", SparkRequest(), gpus=1)
    conf = settings_of(words_of(made, gpu_resource="nvidia.com/gpu"))
    assert conf["spark.yarn.resourceGpuDeviceName"] == "nvidia.com/gpu"
    without = settings_of(words_of(submission("/j", SparkRequest()), gpu_resource="nvidia.com/gpu"))
    assert "spark.yarn.resourceGpuDeviceName" not in without


def test_the_discovery_script_prints_the_devices_of_nvidia_smi(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n3\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    (tmp_path / "gpus.sh").write_text(DISCOVERY_SCRIPT)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = ["sh", str(tmp_path / "gpus.sh")]
    done = subprocess.run(script, env=env, capture_output=True, check=True)
    assert json.loads(done.stdout) == {"name": "gpu", "addresses": ["0", "3"]}


def test_a_path_that_spark_would_split_is_refused() -> None:
    item = Localization("hdfs:///data/a,b.csv", "a.csv")
    with pytest.raises(RefusedError, match="its path has a comma or #"):
        words_of(submission("/j", SparkRequest(), localization=(item,)))


def test_the_driver_gets_the_private_files_and_becomes_the_agent(tmp_path: Path) -> None:
    """The real program, with a runtime in place of the agent that prints what it finds."""
    job, here = tmp_path / "job", tmp_path / "container"
    job.mkdir(), here.mkdir()
    (job / "secret.json").write_text('{"token": "t"}')
    (job / "values.zip").write_bytes(b"zip")
    data = here / "data-0"
    data.write_text("rows")
    made = submission(str(job), SparkRequest(), with_names=("x",))
    agent = replace(made.agent, spec=made.spec, store=JobStore("local", str(job)))
    source = driver_program(Path(template.__file__).read_text(), made, agent)
    source = source.replace("os.execv(sys.executable, arguments)", "print(arguments[1:])")
    source = source.replace(
        "LINKS: list[list[str]] = json.loads('[]')", "LINKS = [['data-0', 'in/rows']]"
    )
    (here / "submarine_driver.py").write_text(source)
    (here / "runtime.zip").write_bytes(runtime_zip().data)
    done = subprocess.run(
        [sys.executable, "-E", "submarine_driver.py"], cwd=here, capture_output=True, text=True
    )
    assert done.stdout == "['-I', 'runtime.zip', 'agent', '--directory', '.']\n", done.stderr
    assert (here / "secret.json").stat().st_mode & 0o777 == 0o600
    assert (here / "values.zip").read_bytes() == b"zip"
    assert json.loads((here / "agent.json").read_text())["spec"]["spark"] == {}
    assert (here / "program/in/rows").read_text() == "rows"


def test_a_missing_private_file_ends_the_driver_with_a_sentence(tmp_path: Path) -> None:
    made = submission(str(tmp_path), SparkRequest())
    agent = replace(made.agent, store=JobStore("local", str(tmp_path)))
    source = driver_program(Path(template.__file__).read_text(), made, agent)
    (tmp_path / "submarine_driver.py").write_text(source)
    (tmp_path / "runtime.zip").write_bytes(runtime_zip().data)
    done = subprocess.run(
        [sys.executable, "-E", "submarine_driver.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "submarine driver: secret.json is missing in the job directory\n"


# The plan

NODES = {
    "nodes": {
        "node": [
            {"id": "n:1", "nodeHostName": "n", "state": "RUNNING", "usedMemoryMB": 0,
             "availMemoryMB": 4096, "usedVirtualCores": 0, "availableVirtualCores": 4}
        ]
    }
}  # fmt: skip
QUEUE = {"queueName": "default", "queuePath": "root.default", "state": "RUNNING"}
SCHEDULER = {
    "scheduler": {
        "schedulerInfo": {"queueName": "root", "queuePath": "root", "queues": {"queue": [QUEUE]}}
    }
}


def plan(memory: int, executor: int, **conf: str) -> Plan:
    request = SparkRequest(2, Resources(executor), {f"spark.{k}": v for k, v in conf.items()})
    roles = (Role(resources=Resources(memory)),)
    spec = JobSpec("etl", "yarn", spark=request, roles=roles)
    view = ClusterView(SCHEDULER, NODES, Steps(128, 128), knows_gpus=True)
    return make_spark_plan(spec, view, "default")


def test_the_containers_have_the_overhead_of_spark() -> None:
    made = plan(1024, 2048)
    assert made.errors == []
    assert [item["memory"] for item in made.containers] == [2048, 2048 + 384 + 128 - 128]
    assert made.containers[1]["count"] == 2


def test_sizes_that_no_node_has_are_refused_with_their_option() -> None:
    assert "ask for less with --memory." in plan(8192, 512).errors[0]
    assert "ask for less with --executor_resources." in plan(512, 8192).errors[0]


# Refusals


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("driver_too_large.txt", "The driver needs 22528 MiB, and a container may have 6144"),
        (
            "executor_too_large.txt",
            "The executor needs 22528 MiB, and a container may have 6144",
        ),
        ("unknown_queue.txt", "There is no queue nosuch."),
    ],
)
def test_the_stderr_of_spark_submit_becomes_a_sentence(file: str, message: str) -> None:
    error = refusal_of((CAPTURED / file).read_text())
    assert message in error.message
    assert error.fix
    assert "\n" not in str(error)


def test_no_spark_is_a_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pyspark is not installed. Type .*\[spark\]"):
        find_spark(Profile())
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="is not a Spark: it has no bin/spark-submit"):
        find_spark(Profile())


def spark_home(path: Path) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "jars").mkdir()
    (path / "bin/spark-submit").touch(0o755)
    (path / "jars/spark-core_2.13-4.3.0.jar").write_bytes(b"core")
    return path


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(spark_home(tmp_path / "spark")))
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin/java").touch(0o755)
    (java / "release").write_text('JAVA_VERSION="11.0.2"\n')
    with pytest.raises(UsageError, match=r"Spark 4\.3\.0 needs Java 17, and .* is version 11"):
        find_spark(Profile(java_home=java))
    with pytest.raises(UsageError, match="is not a Java"):
        find_spark(Profile(java_home=tmp_path))
    (java / "release").write_text('JAVA_VERSION="17.0.2"\n')
    found = find_spark(Profile(java_home=java))
    before = found.archive_name
    assert before.startswith("spark-4.3.0-")
    (found.home / "jars/other.jar").write_bytes(b"x")
    assert found.archive_name != before


def test_credentials_that_spark_cannot_use_are_named() -> None:
    identity: Any = SimpleNamespace(kerberos=True, tokens=None)
    spec, keytab = JobSpec("a", "yarn"), Profile(keytab=Path("/k"), principal="a@B")
    assert kerberos_refusal(Profile(), identity, spec) == ""
    assert "--distribute_keytab" in kerberos_refusal(keytab, identity, spec)
    sent = replace(spec, distribute_keytab=True)
    assert kerberos_refusal(keytab, identity, sent) == ""
    assert "proxy_user" in kerberos_refusal(replace(keytab, proxy_user="b"), identity, sent)
    tokens: Any = SimpleNamespace(kerberos=True, tokens="t")
    assert "only the delegation tokens" in kerberos_refusal(Profile(), tokens, spec)


def test_an_executor_over_its_memory_is_the_reason() -> None:
    message = (
        "An error occurred while calling o9.collect.\n: org.apache.spark.SparkException: Job "
        "aborted due to stage failure: ExecutorLostFailure (executor 1 exited caused by one of "
        "the running tasks) Reason: Container killed by YARN for exceeding physical memory "
        "limits. 1.6 GB of 896 MB physical memory used. Consider boosting "
        "spark.executor.memoryOverhead."
    )
    failure = Failure("py4j.protocol.Py4JJavaError", message)
    ending = determine_ending(ProgramFacts(1, started=True, failure=failure, kind="error"))
    assert ending.reason is EndReason.OUT_OF_MEMORY
    assert ending.detail.startswith("An executor used 1.6 GB of 896 MB; ask for more with")
