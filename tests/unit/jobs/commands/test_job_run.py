"""`job run`: the words of `run`, and job descriptions of Apache Submarine."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.job import run as job_run
from submarine_jobs.commands.run import options_of, run as run_verb
from submarine_jobs.commands.run.notebook import job_options
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.options import RunOptions

JOB = """
spec:
  name: tf-job-001
  job_type: TENSORFLOW
  framework: TensorFlow
configs:
  input_path: hdfs://nn/data
  checkpoint_path: hdfs://nn/checkpoints
  saved_model_path: hdfs://nn/model
  docker_image: tf:2
  wait_job_finish: true
  envs: {MODE: fast, RATE: 0.10}
  localizations: ["hdfs://nn/words.txt:words.txt"]
  mounts: ["/etc/passwd:/etc/passwd:ro", "/etc/group:/etc/group:ro"]
  quicklinks: ["UI=http://master-0:8080"]
scheduling: {queue: ml}
roles:
  worker:
    replicas: 2
    resources: memory=8G,vcores=2,gpu=2
    launch_cmd: python fit.py %input_path%, then --more
    docker_image: tf:2-gpu
    envs: {MODE: "slow, careful"}
  ps: {replicas: 1, resources: "memory=4G,vcores=2", launch_cmd: python ps.py, docker_image: ps:1}
  scheduler:
    {replicas: 1, resources: "memory=1G,vcores=1", launch_cmd: "run a, b", docker_image: s:1}
security: {keytab: /k.keytab, principal: ada@EXAMPLE, distribute_keytab: true}
tensorBoard: {resources: "memory=2G,vcores=1", docker_image: tb:1}
"""
SAME = (
    *("--name", "tf-job-001", "--framework", "tensorflow", "--input_path", "hdfs://nn/data"),
    *("--checkpoint_path", "hdfs://nn/checkpoints", "--saved_model_path", "hdfs://nn/model"),
    *("--docker_image", "tf:2", "--wait_job_finish", "--env", "MODE=fast", "--env", "RATE=0.10"),
    *("--localization", "hdfs://nn/words.txt:words.txt"),
    *("--conf", "docker_mounts=/etc/passwd:/etc/passwd:ro,/etc/group:/etc/group:ro"),
    *("--quicklink", "UI=http://master-0:8080", "--queue", "ml", "--num_workers", "2"),
    *("--worker_resources", "memory=8G,vcores=2,gpu=2"),
    *("--worker_launch_cmd", "python fit.py %input_path%, then --more"),
    *("--worker_docker_image", "tf:2-gpu", "--role", 'worker,env="MODE=slow, careful"'),
    *("--num_ps", "1", "--ps_resources", "memory=4G,vcores=2", "--ps_launch_cmd", "python ps.py"),
    *("--ps_docker_image", "ps:1"),
    *("--role", "scheduler=1,memory=1G,vcores=1,image=s:1,cmd=run a, b"),
    *("--keytab", "/k.keytab", "--principal", "ada@EXAMPLE", "--distribute_keytab"),
    *("--tensorboard_resources", "memory=2G,vcores=1", "--tensorboard_docker_image", "tb:1"),
)
EXPERIMENT = """
meta:
  name: mnist
  namespace: default
  framework: PyTorch
  cmd: python mnist.py
  envVars: {ENV_1: one}
environment: {image: "pytorch:2"}
spec:
  Master:
    {name: m, replicas: 1, resources: "cpu=1,memory=1024M", cmd: python lead.py, image: lead:1}
  Worker: {replicas: 3, resources: "cpu=2,memory=2G,nvidia.com/gpu=1", envVars: {A: b}}
"""


def parsed(verb: click.Command, *words: str) -> RunOptions:
    with verb.make_context("run", list(words)) as ctx:
        ctx.params.pop("as_json", None)
        return options_of(job_options(ctx, ctx.params), ctx.meta["program_args"])


def described(tmp_path: Path, text: str, *words: str) -> RunOptions:
    file = tmp_path / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return parsed(job_run, "-f", str(file), *words)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as error:
        described(tmp_path, text)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_a_description_is_the_command_line_with_its_values(tmp_path: Path) -> None:
    assert described(tmp_path, JOB) == parsed(run_verb, *SAME) == parsed(job_run, *SAME)


def test_an_experiment_is_read(tmp_path: Path) -> None:
    assert described(tmp_path, EXPERIMENT) == parsed(
        run_verb,
        *("--name", "mnist", "--framework", "pytorch", "--worker_launch_cmd", "python mnist.py"),
        *("--env", "ENV_1=one", "--docker_image", "pytorch:2", "--worker", "3"),
        *("--role", "master=1,memory=1G,vcores=1,image=lead:1,cmd=python lead.py"),
        *("--worker_resources", "memory=2G,vcores=2,gpu=1", "--role", "worker,env=A=b"),
    )


def test_words_of_the_command_line_override_the_description(tmp_path: Path) -> None:
    options = described(
        tmp_path, JOB, "--num_workers", "5", "--queue", "other", "--env", "LAST=1", "--", "--epochs"
    )
    worker = options.role("worker")
    assert worker is not None
    assert (worker.instances, options.queue, options.args) == (5, "other", ("--epochs",))
    assert options.env == {"MODE": "fast", "RATE": "0.10", "LAST": "1"}


def test_a_word_after_two_dashes_is_no_description(tmp_path: Path) -> None:
    assert parsed(job_run, "train.py", "--", "-f", "data.yaml").args == ("-f", "data.yaml")


def test_it_has_all_options_of_run_and_the_parameters_file_by_its_long_name() -> None:
    own = [param.name for param in job_run.params if param.name != "job_description"]
    assert own == [param.name for param in run_verb.params]
    opts = {param.name: param.opts for param in job_run.params}
    assert opts["parameter_files"] == ["--parameters_file"]
    assert "-f" in next(p for p in run_verb.params if p.name == "parameter_files").opts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "spec:\n  name: a\n  nmae: b\nconfig: {}\n",
            "job.yaml, line 3: nmae is not a key of spec, which has name, job_type, framework. "
            "job.yaml, line 4: config is not a key of a job description, which has spec, configs, "
            "scheduling, roles, security, tensorBoard.",
        ),
        (
            "roles:\n  worker:\n    mounts: [/a:/b]\n",
            "job.yaml, line 3: this is not supported: write it below configs: it applies to all "
            "roles.",
        ),
        (
            "meta: {name: a}\ncode:\n  syncMode: git\n",
            "job.yaml, line 3: this is not supported: copy the program with --program or --file, "
            "or put it into the image.",
        ),
        (
            "meta: {name: a, namespace: prod}\n",
            "job.yaml, line 1: YARN has no namespaces: leave it out, or use --queue.",
        ),
        (
            "meta: {name: a}\nenvironment: {name: my-env}\n",
            "job.yaml, line 2: predefined environments are not supported: name an image.",
        ),
        ("spec:\n  name: [a]\n", "job.yaml, line 2: this value must be a text or a number."),
        (
            "configs:\n  wait_job_finish: later\n",
            "job.yaml, line 2: this value must be true or false.",
        ),
        ("configs:\n  quicklinks: a\n", "job.yaml, line 2: this value must be a list."),
        ("spec:\n  name: a\n  name: b\n", "job.yaml, line 3: name is given twice."),
        ("spec: a\n", "job.yaml, line 1: keys and values are expected here."),
        ("roles:\n  my role: {}\n", "job.yaml, line 2: my role is not the name of a role."),
        ("spec:\n  name: 'a\n", "job.yaml, line 3: found unexpected end of stream."),
        ("", "The job description job.yaml has no keys such as spec and roles."),
    ],
)
def test_an_invalid_description_is_refused_with_its_line(
    tmp_path: Path, text: str, sentences: str
) -> None:
    assert refusal(tmp_path, text) == sentences


def test_a_description_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        parsed(job_run, "-f", str(tmp_path / "none.yaml"))
    assert "is larger than 1,048,576 bytes" in refusal(tmp_path, "#" * (1 << 20) + "\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["job", "walk"], "job has no command walk; it has run."),
        (["job", "ran"], "job has no command ran; did you mean run?"),
        (["job"], "job needs a command; it has run."),
        (["job", "run", "--insecure"], "A choice of the authentication is not in this release"),
        (["job", "run", "a.py", "--epochs", "3"], "`submarine job run a.py -- --epochs 3`"),
    ],
)
def test_other_words_are_refused_with_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        execute(words, Frontend())
    assert sentence in str(error.value)


def test_options_and_verbs_are_completed() -> None:
    assert complete(["job", ""], Frontend()) == ["run"]
    assert "--worker_resources" in complete(["job", "run", "--worker_r"], Frontend())
    assert "--job_description" in complete(["job", "run", "--job"], Frontend())


@pytest.mark.parametrize(
    "line",
    [
        "--name tf-job-001 --docker_image IMAGE --input_path hdfs://default/dataset/cifar-10-data "
        "--checkpoint_path hdfs://default/tmp/cifar-10-jobdir --num_workers 2 "
        "--worker_resources memory=8G,vcores=2,gpu=2 --worker_launch_cmd 'cmd for worker' "
        "--num_ps 2 --ps_docker_image IMAGE --ps_resources memory=4G,vcores=2 "
        "--ps_launch_cmd 'cmd for ps'",
        "--name tensorboard-service-001 --docker_image IMAGE --tensorboard "
        "--tensorboard_docker_image IMAGE",
        "--name zeppelin-note-book-001 --docker_image IMAGE --num_workers 1 "
        "--worker_resources memory=8G,vcores=2,gpu=1 --worker_launch_cmd /zeppelin/bin/zeppelin.sh "
        "--quicklink Zeppelin_Notebook=http://master-0:8080",
        "--name a --framework tensorflow --queue q --env A=B --conf docker_network=host "
        "--saved_model_path hdfs:///m --tensorboard_resources memory=2G,vcores=1 "
        "--localization hdfs:///f:f --keytab k --principal p --distribute_keytab "
        "--wait_job_finish --verbose",
    ],
)
def test_command_lines_of_apache_submarine_are_accepted(line: str) -> None:
    words = shlex.split(line)
    assert parsed(job_run, *words) == parsed(run_verb, *words)
