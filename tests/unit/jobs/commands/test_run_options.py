"""What is typed after ``run`` becomes a specification, or is refused in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from submarine_jobs.commands import complete
from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import NoClusterError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import JobSpec, Localization, NamedInput, Profile, Resources, Role
from submarine_jobs.options import TENSORBOARD_HISTORY, RoleOptions, parse_role, spec_from_options
from submarine_jobs.options.role_options import format_role
from submarine_jobs.options.unsupported import UNSUPPORTED
from submarine_jobs.python_api import to_arguments

PROFILE = Profile(backend="yarn", queue="ml", python="/opt/py/bin/python")


class Program:
    program = "main.py"
    digest = "d" * 64
    files: Mapping[str, bytes] = MappingProxyType({"main.py": b""})


def spec_of(*words: str) -> JobSpec:
    return spec_from_options(parse_run(["job", *words]), PROFILE, Program())


@pytest.mark.parametrize(
    ("alias", "original"),
    [
        (["--num_workers", "1"], ["--worker", "1"]),
        (["--num-workers", "1"], ["--worker", "1"]),
        (
            ["--worker_resources", "memory=8G,vcores=2,gpu=2"],
            ["--memory", "8G", "--vcores", "2", "--gpu", "2"],
        ),
        (["--worker-resources", "memory=8G"], ["--memory", "8192"]),
        (["--wait_job_finish"], ["--wait"]),
        (["--wait-job-finish"], ["--wait"]),
        (["--input-path", "x"], ["--input_path", "x"]),
        (["--saved-model-path=x"], ["--saved_model_path", "x"]),
        (["--worker-launch-cmd", "c"], ["--worker_launch_cmd", "c"]),
        (["--python_env", "host"], ["--python-env", "host"]),
        (["--on_interrupt", "cancel"], ["--on-interrupt", "cancel"]),
        (["--success", "all"], ["--policy", "all"]),
        (["--num_ps", "2", "--num_workers", "1"], ["--ps", "2", "--worker", "1"]),
        (["--role", "worker=4"], ["--worker", "4"]),
        (["--ps_resources", "gpu=0,memory=4G"], ["--role", "ps,memory=4G,gpu=0"]),
        (["--chief_launch_cmd", "a, b"], ["--role", "chief,cmd=a, b"]),
        (["--tensorboard_resources", "memory=1G"], ["--role", "tensorboard=1,memory=1024"]),
        (["--allow-failures", "20%"], ["--allow-failures", "0.2"]),
        (["--stall", "600s:restart"], ["--stall", "10m:restart"]),
        (["--stall", "OFF"], ["--stall", "off"]),
        (["--gpu", "1", "--idle-gpu", "60m"], ["--gpu", "1", "--idle-gpu", "1h:warn"]),
        (["--file", "data/words.txt"], ["--file", "data/words.txt:words.txt"]),
        (["--archive", "hdfs://nn:8020/e.tar.gz"], ["--archive", "hdfs://nn:8020/e.tar.gz:e"]),
        (["--args", "--epochs 3 'a b'"], ["--", "--epochs", "3", "a b"]),
        (["--framework", "TensorFlow"], ["--framework", "tensorflow"]),
    ],
)
def test_aliases_equal_their_originals(alias: list[str], original: list[str]) -> None:
    assert parse_run(["job", *alias]) == parse_run(["job", *original])


def test_the_submarine_command_line_of_one_role() -> None:
    options = parse_run(
        [
            *("--name", "tf-job-001", "--num_workers", "1"),
            *("--worker_resources", "memory=8G,vcores=2,gpu=2"),
            *("--worker_launch_cmd", "python fit.py %input_path% --out %saved_model_path%"),
            *("--input_path", "hdfs://nn/in", "--saved_model_path", "hdfs://nn/out"),
            *("--env", "A=%input_path%", "--env", "B=2", "--queue", "ml"),
            *("--localization", "hdfs://nn:8020/a/b:c:rw", "--wait_job_finish", "--verbose"),
            *("--quicklink", "Notes=http://host:8080"),
        ]
    )
    spec = spec_from_options(options, PROFILE, None)
    assert spec.name == "tf-job-001"
    assert spec.program is None
    assert spec.worker.command == "python fit.py hdfs://nn/in --out hdfs://nn/out"
    assert spec.worker.resources == Resources(8192, 2, 2)
    assert dict(spec.env) == {"A": "hdfs://nn/in", "B": "2"}
    assert spec.localization == (Localization("hdfs://nn:8020/a/b", "c", "rw"),)
    assert options.wait
    assert options.verbose


@pytest.mark.parametrize("name", [name for one in UNSUPPORTED for name in one.names])
@pytest.mark.parametrize("form", ["{} 2", "{}=2", "{}"])
def test_options_of_later_releases_are_refused_by_name(name: str, form: str) -> None:
    for spelling in (name, name.replace("_", "-")):
        with pytest.raises(UsageError, match="not in this release") as caught:
            parse_run(["job", *form.format(spelling).split()])
        assert spelling in str(caught.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gpus", "2"], "No such option --gpus of run; did you mean --gpu?"),
        (["--memery", "2G"], "No such option --memery of run; did you mean --memory?"),
        (
            ["--zzzzzz"],
            "No such option --zzzzzz of run. Arguments of the program stand after --: `submarine ",
        ),
        (["--memory"], "--memory needs a value."),
        (["--memory", "8G", "--worker_resources", "memory=4G"], "different amounts"),
        (["--name", "other"], "Two names are given: job and other."),
        (["--args", "a", "--", "b"], "Arguments are given twice"),
        (["--worker_launch_cmd", "c", "--", "b"], "--worker_launch_cmd replaces it"),
        (["--env", "A=1", "--env", "A=2"], "--env gives A twice"),
        (["--secret", "A=x", "--secret", "A"], "--secret gives A twice"),
        (["--secret", "A", "--env", "A=1"], "--env and --secret both set A."),
        (["--secret", "A", "--role", "reader=1,env=A=1"], "--env and --secret both set A."),
        (["--share", "bob"], "--share 'bob' does not say what it permits."),
        (["--share", "view:*"], "--share 'view:*': '*' is not the name of a user or group."),
        (["--share", "view:@"], "--share 'view:@': '@' is not the name of a user or group."),
        (["--secret", "1A"], "--secret '1A' is not NAME or NAME=FILE."),
        (["--secret", "A="], "--secret 'A' is not NAME or NAME=FILE."),
        (["--secret", "SUBMARINE_JOB_ID"], "--secret cannot set SUBMARINE_JOB_ID:"),
        (["--secret", "PATH"], "--secret cannot set PATH:"),
        (["--secret", "LD_PRELOAD=x"], "--secret cannot set LD_PRELOAD:"),
        (["--secret", "PYTHONSTARTUP=x"], "--secret cannot set PYTHONSTARTUP:"),
        (["--secret", "HADOOP_TOKEN_FILE_LOCATION"], "--secret cannot set HADOOP_TOKEN_FILE_LOC"),
        (["--with", "not a name"], "not the name of a variable"),
        (["--python-env", "dcoker:image"], "is not known"),
        (["--chief", "2"], "--chief 2: a job has one chief."),
        (["--chief", "1", "--role", "master=1"], "master is another word for it"),
        (["--ps", "2"], "--ps 2 without workers has no tasks to serve."),
        (["--evaluator", "1"], "has nothing to evaluate"),
        (["--worker", "2", "--min-workers", "3"], "--min-workers 3 is more than the 2 of --worker"),
        (["--chief", "1", "--min-workers", "1"], "more than the 0 of --worker"),
        (["--role", "reader=2,min=3"], "min=3 is more than its 2 tasks"),
        (["--role", "a=1,after=b"], "after=b names no role of this job; it has a."),
        (
            ["--role", "a,after=b", "--role", "b,after=c", "--role", "c,after=a"],
            "These roles wait for each other: a after b after c after a.",
        ),
        (["--role", "a,after=a"], "wait for each other: a after a."),
        (["--stall", "soon"], "--stall: 'soon' is not a duration."),
        (["--stall", "9s"], "--stall: '9s' is too short."),
        (["--stall", "1h:end"], "--stall: 'end' is not one of warn, restart."),
        (["--stall", "1h:"], "--stall: '' is not one of warn, restart."),
        (["--stall", "off:warn"], "'off:warn' has an action, but off has none."),
        (["--gpu", "1", "--idle-gpu", "1h:restart"], "'restart' is not one of warn, end."),
        (["--idle-gpu", "1h"], "--idle-gpu needs a job with GPUs"),
        (["--policy", "fraction"], "--policy fraction does not say which fraction may fail."),
        (["--policy", "all", "--allow-failures", "0.1"], "does not go with --policy all"),
        (["--worker", "1", "--ps", "1", "--ps_resources", "gpu=1"], "no use for 1 GPU."),
        (["--worker", "0"], "--worker 0 leaves nothing to run."),
        (["--worker", "5000"], "The job asks for 5000 tasks."),
        (["--role", "reader=1,kind=sidecar"], "Nothing would ever end this job"),
        (["--role", "Reader=1"], "'Reader' cannot be a role's name"),
        (["--role", "reader=1,memmory=4G"], "'memmory=4G' is not known there"),
        (["--role", "reader=1,,gpu=1"], "has an empty part after a comma"),
        (["--role", 'reader=1,env="A=1'], "a quote that is not closed"),
        (["--role", "reader=1,memory=4G", "--role", "reader=1,memory=5G"], "values of memory"),
        (["--worker", "2", "--role", "worker=3"], "two different values of a number"),
        (["--heartbeat", "30s"], "--lost-after 25s would take tasks for lost"),
        (["--docker_image", "a", "--python-env", "docker:b"], "is given two images, a and b"),
        (["--input", "a=x", "--input", "a=y"], "would both be SUBMARINE_INPUT_a"),
        (["--param", "lr=1", "--param", "LR=2"], "would both be SUBMARINE_PARAM_LR"),
        (["--param", "a"], "--param 'a' is not NAME=VALUE."),
        (["--param", "a=1", "--param", "a=2"], "--param gives a twice"),
        (["--archive", "env.rar"], "does not end as an archive does"),
        (["--file", "a/x", "--archive", "b/x.zip"], "--archive puts two things at x."),
        (["--python-env", "path:relative"], "is not an absolute path"),
        (["--localization", "a:x", "--localization", "b:x/y"], "into x|two things at x"),
        (["--", "%input_path%"], "--input_path"),
    ],
)
def test_one_sentence_for_each_refusal(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec_of(*words)
    assert any(part in str(caught.value) for part in sentence.split("|"))
    assert "\n" not in str(caught.value)


def test_a_word_that_ends_like_a_file_is_the_program() -> None:
    assert parse_run(["train.py"]).program == "train.py"
    assert parse_run(["digits.ipynb", "--name", "d"]).name == "d"
    assert parse_run(["digits"]).name == "digits"


def test_no_cluster_names_the_ways_on() -> None:
    with pytest.raises(NoClusterError, match="minicluster start") as caught:
        spec_from_options(parse_run(["job"]), Profile(), Program())
    for way in ("HADOOP_CONF_DIR", "hadoop_conf_dir", "--profile minicluster", "--backend local"):
        assert way in str(caught.value)


def test_placeholders_need_their_option() -> None:
    with pytest.raises(UsageError, match="checkpoint_path"):
        spec_of("--env", "A=%checkpoint_path%")
    assert spec_of("--env", "A=%other%").env == {"A": "%other%"}


def test_path_environment_is_resolved() -> None:
    options = parse_run(["job"])
    profile = Profile(backend="yarn", python_env="path:/opt/env", state_dir=Path("/tmp"))
    assert spec_from_options(options, profile, Program()).python == "/opt/env/bin/python3"


def test_submarines_distributed_job() -> None:
    words = [
        *("--name", "tf-job-001", "--input_path", "hdfs://default/dataset/cifar-10-data"),
        *("--checkpoint_path", "hdfs://default/tmp/cifar-10-jobdir", "--num_workers", "2"),
        *("--worker_resources", "memory=8G,vcores=2,gpu=2", "--worker_launch_cmd", "for worker"),
        *("--num_ps", "2", "--ps_resources", "memory=4G,vcores=2", "--ps_launch_cmd", "for ps"),
    ]
    spec = spec_from_options(parse_run(words), PROFILE, None)
    assert spec.roles == (
        Role("worker", 2, Resources(8192, 2, 2), "for worker"),
        Role("ps", 2, Resources(4096, 2, 0), "for ps", kind="untracked"),
    )
    assert spec.distributed
    assert (spec.program, spec.docker_image) == (None, None)


def test_submarines_tensorboard_alone_is_a_service() -> None:
    words = ["--name", "tensorboard-service-001", "--tensorboard"]
    spec = spec_from_options(parse_run(words), PROFILE, None)
    assert spec.roles == (Role("tensorboard", 1, Resources(1024, 1, 0), TENSORBOARD_HISTORY),)
    assert dict(spec.quicklinks) == {"TensorBoard": "http://tensorboard-0:0/"}
    # Where there is a program, it is trained and TensorBoard looks on.
    beside = spec_from_options(parse_run(words), PROFILE, Program())
    assert [(role.name, role.kind) for role in beside.roles] == [
        ("worker", "tracked"),
        ("tensorboard", "sidecar"),
    ]
    alone = spec_from_options(parse_run([*words, "--worker", "0"]), PROFILE, Program())
    assert alone.roles == spec.roles


def test_submarines_service_with_a_quicklink() -> None:
    words = [
        *("--name", "zeppelin-note-book-001", "--docker_image", "zeppelin:1", "--num_workers", "1"),
        *("--worker_resources", "memory=8G,vcores=2,gpu=4"),
        *("--worker_launch_cmd", "/zeppelin/bin/zeppelin.sh"),
        *("--quicklink", "Zeppelin_Notebook=http://master-0:8080"),
    ]
    spec = spec_from_options(parse_run(words), PROFILE, None)
    assert spec.roles == (Role("worker", 1, Resources(8192, 2, 4), "/zeppelin/bin/zeppelin.sh"),)
    assert dict(spec.quicklinks) == {"Zeppelin_Notebook": "http://master-0:8080"}
    assert (spec.docker_image, spec.python_env) == ("zeppelin:1", "docker:zeppelin:1")


def test_sizes_and_kinds_that_are_not_given() -> None:
    spec = spec_of(
        *("--worker", "2", "--chief", "1", "--ps", "1", "--evaluator", "1", "--tensorboard"),
        *("--memory", "8G", "--vcores", "3", "--gpu", "2", "--role", "reader=1,memory=1G"),
        *("--node-label", "fast", "--spread", "--processes", "2", "--min-workers", "1"),
    )
    roles = {role.name: role for role in spec.roles}
    assert list(roles) == ["chief", "worker", "ps", "evaluator", "reader", "tensorboard"]
    assert {name: vars(role.resources) for name, role in roles.items()} == {
        **dict.fromkeys(("chief", "worker", "evaluator"), vars(Resources(8192, 3, 2))),
        "ps": vars(Resources(8192, 3, 0)),
        "reader": vars(Resources(1024, 3, 2)),
        "tensorboard": vars(Resources(1024, 1, 0)),
    }
    assert {name for name, role in roles.items() if role.kind == "tracked"} == {
        *("chief", "worker", "evaluator", "reader")
    }
    assert {role.node_label for role in spec.roles} == {"fast"}
    assert [roles[name].processes for name in ("worker", "ps")] == [2, 0]
    assert (roles["worker"].least, roles["chief"].least) == (1, None)
    assert not roles["tensorboard"].spread


def test_the_framework_is_what_the_program_imports() -> None:
    class Training(Program):
        files = MappingProxyType({"main.py": b"import model\n", "model.py": b"import tensorflow\n"})

    options = parse_run(["job", "--worker", "2"])
    assert spec_from_options(options, PROFILE, Training()).framework == "tensorflow"
    assert spec_from_options(options, PROFILE, Program()).framework == "any"
    forced = parse_run(["job", "--framework", "any"])
    assert spec_from_options(forced, PROFILE, Training()).framework == "any"


def test_rules_of_the_gang_are_in_the_spec() -> None:
    spec = spec_of(
        *("--worker", "4", "--gang-timeout", "5m", "--gang-retries", "2", "--max-restarts", "7"),
        *("--allow-failures", "0.25", "--heartbeat", "2s", "--lost-after", "1m"),
        *("--priority", "3", "--network-interface", "ib0", "--resume", "digits-20261120-7f3a"),
        *("--param", "lr=0.1", "--param", "name=ada", "--param", "sizes=[1,2]"),
        *("--input", "train=hdfs:///d:shard", "--file", "/x/words.txt", "--archive", "/x/a.zip"),
    )
    assert (spec.gang_timeout, spec.gang_retries, spec.max_restarts) == (300.0, 2, 7)
    assert (spec.policy, spec.allowed_failures) == ("fraction", 0.25)
    assert (spec.heartbeat, spec.lost_after, spec.priority) == (2.0, 60.0, 3)
    assert (spec.network_interface, spec.resume_from) == ("ib0", "digits-20261120-7f3a")
    assert dict(spec.params) == {"lr": 0.1, "name": "ada", "sizes": [1, 2]}
    assert spec.inputs == (NamedInput("train", "hdfs:///d", shard=True),)
    assert spec.localization == (Localization("/x/words.txt", "words.txt"),)
    assert spec.archives == (Localization("/x/a.zip", "a"),)
    assert JobSpec.from_bytes(spec.to_bytes()) == spec


@pytest.mark.parametrize(
    ("text", "command", "env"),
    [
        ("reader=1,cmd=a, b,memory=4G", "a, b,memory=4G", {}),
        ("reader=1,cmd='a, b',env=K=V", "a, b", {"K": "V"}),
        ("reader=1,cmd='a b' --fast", "'a b' --fast", {}),
        (r'reader=1,cmd="say \"a, b\"",env=K=V', 'say "a, b"', {"K": "V"}),
        ('reader=1,env="A=1,2",env=B="3,4",cmd=c', "c", {"A": "1,2", "B": "3,4"}),
    ],
)
def test_commas_within_a_role(text: str, command: str, env: dict[str, str]) -> None:
    role = parse_role(text)
    assert (role.command, dict(role.env)) == (command, env)
    assert parse_role(format_role(role)) == role


def test_python_says_the_same_as_words() -> None:
    options: dict[str, object] = {
        "workers": 2,
        "ps": 1,
        "roles": {"reader": {"memory": "4G", "env": {"A": "1,2"}, "cmd": "x, y"}, "other": 2},
        "params": {"lr": 0.1, "text": "0.1"},
        "inputs": {"train": "hdfs:///d:shard"},
    }
    parsed = parse_run(["job", *to_arguments(options, {})])
    assert [(role.name, role.count) for role in parsed.roles] == [
        *(("worker", 2), ("ps", 1), ("reader", 1), ("other", 2))
    ]
    reader = parsed.role("reader")
    assert reader == RoleOptions("reader", memory=4096, env={"A": "1,2"}, command="x, y")
    assert dict(parsed.params) == {"lr": 0.1, "text": "0.1"}
    assert parsed.inputs == (NamedInput("train", "hdfs:///d", shard=True),)


_F = ("frame", "format")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--role", "wo"], {"worker="}),
        (["--role", "ps=2,g"], {"ps=2,gpu="}),
        (["--role", "ps=2,kind=u"], {"ps=2,kind=untracked"}),
        (["--python-env", "a"], {"auto", "archive:"}),
        (["--policy", "a"], {"all", "any"}),
        (["--evaluator_l"], {"--evaluator_launch_cmd"}),
        (["--framework", "tens"], {"tensorflow"}),
        (["--input", "T=hdfs:///d:s"], {"T=hdfs:///d:shard", "T=hdfs:///d:stream"}),
        (["--input", "T=/a:b:d"], {"T=/a:b:download"}),
        (["--input", "T=data:"], set()),
        (["--input", "T=data:d:m"], {"T=data:d:mount"}),
        (["--input", "T=/d:stream=epochs=2,f"], {f"T=/d:stream=epochs=2,{w}=" for w in _F}),
        (["--input", "T=/d:stream=frame=a"], {"T=/d:stream=frame=arrow"}),
        (["--input", "T=/d:stream=format=pa"], {"T=/d:stream=format=parquet"}),
    ],
)
def test_tab_knows_the_words_of_roles(words: list[str], offered: set[str]) -> None:
    assert set(complete(["run", *words], Frontend())) == offered


def test_a_python_without_tensorboard_is_found_before_submitting(tmp_path: Path) -> None:
    from submarine_jobs.commands.run import Program as Found
    from submarine_jobs.commands.run.checks import check_run

    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    options = parse_run(["boards", "--tensorboard"])
    profile = Profile(backend="yarn", python_env=f"path:{tmp_path}")
    spec = spec_from_options(options, profile, None)
    found = check_run(spec, Found("boards", None), Frontend())
    assert [(item.code, str(item.level)) for item in found] == [("missing-tensorboard", "error")]
    without = replace(spec, roles=(replace(spec.roles[0], command="true"),))
    assert check_run(without, Found("boards", None), Frontend()) == []
