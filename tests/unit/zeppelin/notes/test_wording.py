"""Commands of a paragraph, legacy commands and form, and values of settings."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import TicketError, UsageError
from submarine_zeppelin.interface import Context, choice_property, flag_property, number_property
from submarine_zeppelin.notes import (
    JOB_RUN,
    FormFields,
    check_cleanable,
    error_text,
    parse_command,
    reword_help,
    run_words,
    split_commands,
    translate_command_line,
)

CONTEXT = Context("2JA_B", "p1", user="Ada.L")


def test_split_commands() -> None:
    assert split_commands("\n# all of it\n\n run a \\\n  --gpu 1\nlist\n") == [
        "run a    --gpu 1",
        "list",
    ]
    assert split_commands(" \n") == ["help"]


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
def test_translate_command_line(typed: str, meant: str) -> None:
    assert translate_command_line(typed.split()) == meant.split()


@pytest.mark.parametrize("line", ["JOB_RUN", "job run", "Job  Run"])
def test_parse_command(line: str) -> None:
    assert parse_command(line) == JOB_RUN
    assert parse_command(f"{line} digits") is None


def test_run_command_of_the_form() -> None:
    properties = {
        "machinelearning.distributed.enable": "true",
        "tf.worker.services.num": "3",
        "tf.worker.services.gpu": "2",
        "tf.worker.services.docker.image": "tf:2",
        "docker.container.network": "host",
        "tf.parameter.services.num": "2",
        "tf.parameter.services.memory": "3G",
        "tf.checkpoint.path": "hdfs:///user/${username}/ckpt/",
        "tf.tensorboard.enable": "true",
    }
    fields = FormFields.of(
        {
            "command": "JOB_RUN",
            "input_path": "hdfs:///data",
            "worker_launch_cmd": "python main.py --job-dir=%checkpoint_path%",
            "ps_launch_cmd": "python main.py --ps",
            "clean_checkpoint": ["true"],
        }
    )
    assert fields.clean_checkpoint
    options = parse_run(run_words(properties, fields, CONTEXT)[1:])
    worker, ps = options.role("worker"), options.role("ps")
    assert worker is not None
    assert ps is not None
    assert options.name == "ada-l-2ja-b"
    assert options.input_path == "hdfs:///data"
    assert options.checkpoint_path == "hdfs:///user/Ada.L/ckpt/2JA_B"
    assert (worker.count, options.gpus, options.vcores, options.memory) == (3, 2, 2, 4096)
    assert worker.command == "python main.py --job-dir=%checkpoint_path%"
    assert worker.image == "tf:2"
    assert options.settings == {"docker_network": "host"}
    assert (ps.count, ps.memory, ps.command) == (2, 3072, "python main.py --ps")
    assert options.role("tensorboard") is not None


def test_one_worker_without_distribution() -> None:
    fields = FormFields(worker_launch_cmd="python main.py")
    options = parse_run(run_words({"tf.worker.services.num": "5"}, fields, CONTEXT)[1:])
    worker = options.role("worker")
    assert worker is not None
    assert worker.count == 1
    assert options.role("ps") is None


@pytest.mark.parametrize("path", ["hdfs:///", "hdfs://nn/user/ada/x", "/a/b/c", "/a/../../b/c/d"])
def test_shallow_checkpoint_paths_are_rejected(path: str) -> None:
    with pytest.raises(UsageError, match="is not cleaned"):
        check_cleanable(path)


def test_deep_checkpoint_paths_are_accepted() -> None:
    check_cleanable("hdfs://nn/user/ada/ckpt/2J")


@given(st.dictionaries(st.sampled_from(["command", "input_path", "clean_checkpoint"]), st.none()))
def test_malformed_form_values_are_empty(params: dict[str, None]) -> None:
    assert FormFields.of(params) == FormFields()


def test_invalid_settings_are_reported() -> None:
    with pytest.raises(UsageError, match=r"tf\.worker\.services\.num"):
        number_property({"tf.worker.services.num": "many"}, "tf.worker.services.num")
    with pytest.raises(UsageError, match="true or false"):
        flag_property({"submarine.wait": "perhaps"}, "submarine.wait")
    with pytest.raises(UsageError, match="cancel or detach"):
        choice_property({"submarine.stop": "kill"}, "submarine.stop", ("cancel", "detach"))
    misspelt = {"machinelearing.distributed.enable": "true"}
    assert flag_property(misspelt, "machinelearning.distributed.enable")


def test_a_missing_ticket_names_the_settings_of_zeppelin() -> None:
    said = error_text(TicketError("No Kerberos credentials available"))
    assert "Set SUBMARINE_HADOOP_KEYTAB and SUBMARINE_HADOOP_PRINCIPAL on the page" in said
    assert "login" not in said
    shown = reword_help("Cluster:\n  doctor  Check.\n  login   Get a ticket.\n  logs    Show.\n")
    assert shown == "Cluster:\n  doctor  Check.\n  logs    Show.\n"
