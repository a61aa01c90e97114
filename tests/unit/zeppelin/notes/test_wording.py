"""What a paragraph's words mean: commands, and those of Zeppelin's former interpreter."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import UsageError
from submarine_zeppelin.interface import Context, properties as settings
from submarine_zeppelin.notes import legacy as former, lines_of

CONTEXT = Context("2JA_B", "p1", user="Ada.L")


def test_lines_are_commands() -> None:
    assert lines_of("\n# all of it\n\n run a \\\n  --gpu 1\nlist\n") == ["run a    --gpu 1", "list"]
    assert lines_of(" \n") == ["help"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("yarn jar submarine.jar job run --name a", "run --name a"),
        ("submarine list", "list"),
        ("%submarine list", "list"),
        ("job show a", "show a"),
        ("help run", "run --help"),
        ("help", "--help"),
        ("JOB_LIST", "list"),
    ],
)
def test_command_lines_of_old(typed: str, meant: str) -> None:
    assert former.ours(typed.split()) == meant.split()


@pytest.mark.parametrize("line", ["JOB_RUN", "job run", "Job  Run"])
def test_words_of_old(line: str) -> None:
    assert former.word_of(line) == former.JOB_RUN
    assert former.word_of(f"{line} digits") is None


def test_the_form_and_the_properties_are_a_run() -> None:
    properties = {
        "machinelearning.distributed.enable": "true",
        "tf.worker.services.num": "3",
        "tf.worker.services.gpu": "2",
        "tf.worker.services.docker.image": "tf:2",
        "tf.parameter.services.num": "2",
        "tf.parameter.services.memory": "3G",
        "tf.checkpoint.path": "hdfs:///user/${username}/ckpt/",
        "tf.tensorboard.enable": "true",
    }
    fields = former.Fields.of(
        {
            "command": "JOB_RUN",
            "input_path": "hdfs:///data",
            "worker_launch_cmd": "python main.py --job-dir=%checkpoint_path%",
            "ps_launch_cmd": "python main.py --ps",
            "clean_checkpoint": ["true"],
        }
    )
    assert fields.clean_checkpoint
    options = parse_run(former.run_words(properties, fields, CONTEXT)[1:])
    worker, ps = options.role("worker"), options.role("ps")
    assert worker is not None
    assert ps is not None
    assert options.name == "ada-l-2ja-b"
    assert options.input_path == "hdfs:///data"
    assert options.checkpoint_path == "hdfs:///user/Ada.L/ckpt/2JA_B"
    assert (worker.count, options.gpus, options.vcores, options.memory) == (3, 2, 2, 4096)
    assert worker.command == "python main.py --job-dir=%checkpoint_path%"
    assert worker.image == "tf:2"
    assert (ps.count, ps.memory, ps.command) == (2, 3072, "python main.py --ps")
    assert options.role("tensorboard") is not None


def test_without_distribution_there_is_one_worker() -> None:
    fields = former.Fields(worker_launch_cmd="python main.py")
    options = parse_run(former.run_words({"tf.worker.services.num": "5"}, fields, CONTEXT)[1:])
    worker = options.role("worker")
    assert worker is not None
    assert worker.count == 1
    assert options.role("ps") is None


@pytest.mark.parametrize("path", ["hdfs:///", "hdfs://nn/user/ada/x", "/a/b/c", "/a/../../b/c/d"])
def test_shallow_checkpoint_paths_are_never_removed(path: str) -> None:
    with pytest.raises(UsageError, match="is not cleaned"):
        former.check_cleanable(path)


def test_deep_checkpoint_paths_may_be() -> None:
    former.check_cleanable("hdfs://nn/user/ada/ckpt/2J")


@given(st.dictionaries(st.sampled_from(["command", "input_path", "clean_checkpoint"]), st.none()))
def test_odd_values_of_a_form_are_empty(params: dict[str, None]) -> None:
    assert former.Fields.of(params) == former.Fields()


def test_settings_say_what_is_wrong_with_them() -> None:
    with pytest.raises(UsageError, match=r"tf\.worker\.services\.num"):
        settings.number({"tf.worker.services.num": "many"}, "tf.worker.services.num")
    with pytest.raises(UsageError, match="true or false"):
        settings.flag({"submarine.wait": "perhaps"}, "submarine.wait")
    with pytest.raises(UsageError, match="cancel or detach"):
        settings.choice({"submarine.stop": "kill"}, "submarine.stop", ("cancel", "detach"))
    misspelt = {"machinelearing.distributed.enable": "true"}
    assert settings.flag(misspelt, "machinelearning.distributed.enable")
    assert settings.output_limit({"zeppelin.interpreter.output.limit": "50000"}) == 50_000
    assert settings.output_limit({"zeppelin.interpreter.output.limit": "x"}) == 102_400
