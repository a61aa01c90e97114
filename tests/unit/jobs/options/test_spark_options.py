"""Options of Spark jobs: what they mean, and what they refuse."""

from __future__ import annotations

import pytest

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, Profile, Resources, SparkRequest
from submarine_jobs.options import check_options, command_of_spec, spec_from_options


class Program:
    """A program that imports a library of training: its framework does not matter."""

    program = "etl.py"
    digest = "d" * 64
    files = {"etl.py": b"import torch\nimport pyspark\n"}


def spec_of(words: str) -> JobSpec:
    profile = Profile(backend="yarn")
    return spec_from_options(
        parse_run(["etl.py", "--name", "etl", *words.split()]), profile, Program()
    )


def test_executors_and_settings_are_in_the_spec() -> None:
    spec = spec_of(
        "--type spark --executor 4 --executor_resources memory=1500M,vcores=2,gpu=1"
        " --conf spark.sql.shuffle.partitions=8"
    )
    conf = {"spark.sql.shuffle.partitions": "8"}
    assert spec.spark == SparkRequest(4, Resources(1500, 2, 1), conf)
    assert (spec.framework, spec.distributed) == ("any", False)
    assert JobSpec.from_bytes(spec.to_bytes()) == spec


def test_a_job_of_another_type_has_no_request() -> None:
    assert spec_of("").spark is None


def test_the_command_line_of_a_spec_gives_the_same_spec() -> None:
    spec = spec_of("--type spark --executor_resources gpu=2 --conf spark.ui.enabled=false")
    options = parse_run(command_of_spec(spec).split()[2:])
    assert spec_from_options(options, Profile(backend="yarn"), Program()) == spec


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--executor 2", "--executor is an option of Spark jobs."),
        ("--executor_resources memory=2G", "--executor_resources is an option of Spark jobs."),
        ("--conf spark.ui.port=1", "--conf spark.ui.port is an option of Spark jobs."),
        ("--type spark --gang-timeout 5m", "--gang-timeout has no meaning for --type spark."),
        ("--type spark --max-restarts 2", "--max-restarts has no meaning for --type spark."),
        ("--type spark --docker_image a", "--docker_image has no meaning for --type spark."),
        ("--type spark --share view:bob", "--share has no meaning for --type spark."),
        ("--type spark --framework pytorch", "--framework pytorch has no meaning"),
        ("--type spark --tensorboard", "A Spark job has no roles: tensorboard."),
        ("--type spark --worker 2", "A Spark job has no roles: worker."),
        ("--type spark --python-env docker:a", "--python-env docker:a is not available"),
        ("--type spark --conf spark.master=local", "Submarine sets this setting of Spark."),
        ("--type spark --conf spark.yarn.queue=a", "Use --queue instead."),
        ("--type spark --conf spark.executor.memory=1g", "Use --executor_resources instead."),
        ("--type spark --conf spark.executorEnv.A=1", "Use --env instead."),
        ("--type spark --conf spark.yarn.maxAppAttempts=2", "Leave it out."),
        ("--type spark --conf spark.hadoop.fs.s3a.secret.key=x", "seems to be a secret"),
    ],
)
def test_contradictions_are_refused_with_one_sentence(words: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_options(parse_run(["etl.py", *words.split()]))
    assert message in str(refused.value)
