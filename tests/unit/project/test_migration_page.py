"""The page on migration has all options of the other systems, and names only options that exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from submarine_jobs.commands.grammar import grammar

PAGE = (Path(__file__).parents[3] / "docs" / "migration.md").read_text(encoding="utf-8")
#: What the page writes where there is no counterpart, an en dash.
NONE = "\N{EN DASH}"
#: The options of each system that its reference lists.
OPTIONS = {
    "XLearning": (
        "--app-name --app-type --cluster --queue --priority --duration --conf --files "
        "--archiveFiles --cacheFile --cacheArchive --jars --driver-memory --driver-cores "
        "--worker-num --worker-memory --worker-cores --worker-gpus --ps-num --ps-memory "
        "--ps-cores --ps-gpus --chiefworker-memory --evaluatorworker-memory --input --s3input "
        "--output --s3output --input-strategy --output-strategy --inputformat "
        "--inputformat-shuffle --outputformat --stream-epoch --isRenameInputFile --output-index "
        "--create-containerid-dir --tf-evaluator --board-enable --board-index --board-logdir "
        "--board-historydir --board-reloadinterval --board-modelpb --board-cacheTimeout "
        "--inputformat-enable --outputformat-enable --host-local-enable --user-path "
        "--user-classpath-first --launch-cmd --hbox-cmd"
    ),
    "TonY": (
        "-executes -src_dir -task_params -python_venv -python_binary_path -shell_env "
        "-container_env -conf -conf_file -hdfs_classpath -sidecar_tensorboard_log_dir -debug"
    ),
    "tf-yarn": (
        "pyenv_zip_path files env queue acls file_systems nb_retries custom_task_module name "
        "pre_script_hook cuda_runtime_hdfs_path eval_monitor_log_thresholds skein_client "
        "experiment_fn task_specs"
    ),
    "CaffeOnSpark": (
        "-train -test -features -label -conf -model -weights -snapshot -output -outputFormat "
        "-devices -connection -clusterSize -lmdb_partitions -persistent -resize -imageRoot "
        "-labelFile"
    ),
}


def rows(system: str) -> list[list[str]]:
    """The cells of the tables in the section of a system: option, ours, remark."""
    section = re.search(rf"^## {system}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines = [line for line in section[1].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("system", OPTIONS)
def test_every_option_of_a_system_has_a_row(system: str) -> None:
    named = {word for row in rows(system) for word in re.findall(r"`([^`]+)`", row[0])}
    assert set(OPTIONS[system].split()) - named == set()


@pytest.mark.parametrize("system", OPTIONS)
def test_every_option_of_ours_exists(system: str) -> None:
    group = grammar()
    with click.Context(group, info_name="submarine") as context:
        run = group.get_command(context, "run")
        assert run is not None
        known = {name.replace("_", "-") for param in run.params for name in param.opts}
        verbs = set(group.list_commands(context))
    for row in rows(system):
        assert len(row) == 3, row
        own = f"{row[1]} {row[2]}"
        named = {name.replace("_", "-") for name in re.findall(r"`(--[a-z][\w-]*)", own)}
        assert named - known - {"--"} == set(), row
        assert set(re.findall(r"`submarine ([a-z]+)", own)) <= verbs, row


@pytest.mark.parametrize("system", OPTIONS)
def test_a_row_names_an_option_or_says_that_there_is_none(system: str) -> None:
    for row in rows(system)[1:]:
        if row[0].startswith(("option", "key of", "argument", "--")):
            continue
        assert row[1] == NONE or "`" in row[1], row
        assert row[1] != NONE or row[2], row
