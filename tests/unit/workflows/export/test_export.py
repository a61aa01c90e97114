"""`submarine workflow export`: DAG files and crontab lines, and what a shell makes of them."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_workflows.export.airflow import dag_of
from submarine_workflows.export.crontab import crontab_of
from submarine_workflows.export.shell import expand, word_of
from submarine_workflows.formats import read_workflow
from tests.processes import is_gone
from tests.waiting import until

HOSTILE = "a'b\"c $(touch pwned) `touch pwned` \\ {{ run_id }} %d"
FLOW = """\
schedule: 0 30 2 ? * MON-FRI
timezone: Europe/Berlin
config: {date: "2026-01-01", where: "out/${date}", failure.emails: "a@b.c,d@e.f"}
nodes:
  - name: features
    type: command
    config: {command: "printf %s ${where} {{x}}", retries: "2", retry.backoff: "5000"}
  - name: train
    notebook: train.ipynb
    params: {date: "${date}"}
    job: {gpu: 1}
    dependsOn: [features]
  - name: inner
    type: flow
    dependsOn: [train]
    condition: ${train:accuracy} > 0.9
    nodes:
      - {name: one, type: noop}
      - {name: two, type: noop, dependsOn: [one]}
  - name: last
    type: noop
    dependsOn: [train, inner]
    condition: one_success_all_done
"""


def steps_of(text):
    """Task id -> keyword arguments of each ``Step(...)`` of a DAG file."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Step":
            words = {}
            for keyword in node.keywords:
                try:
                    words[keyword.arg] = ast.literal_eval(keyword.value)
                except ValueError:
                    words[keyword.arg] = ast.unparse(keyword.value)
            found[words["task_id"]] = words
    return found


def parameters_of(text):
    """The ``PARAMETERS`` of a DAG file."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PARAMETERS":
            return ast.literal_eval(node.value)
    raise AssertionError("no PARAMETERS")


def test_every_node_is_a_step_with_its_own_commands_retries_and_rule():
    text = dag_of(read_workflow(FLOW, "nightly"), "nightly")
    steps = steps_of(text)
    assert set(steps) == {"features", "train", "one", "two", "submarine_start", "last"}
    assert steps["features"]["retries"] == 2
    assert steps["features"]["retry_delay"] == "timedelta(milliseconds=5000)"
    assert steps["features"]["email"] == ["a@b.c", "d@e.f"]
    train = steps["train"]["bash_command"].splitlines()
    assert any(
        line.startswith("submarine run train.ipynb -o runs/") and "--return accuracy" in line
        for line in train
    )
    assert "do_xcom_push" not in steps["train"]
    assert steps["features"]["do_xcom_push"] is False
    assert steps["last"]["trigger_rule"] == "all_done_min_one_success"
    assert "schedule='30 2 * * 1,2,3,4,5'" in text
    assert "ZoneInfo('Europe/Berlin')" in text
    assert "[steps['train'], steps['inner']] >> steps['last']" in text
    assert "start >> steps['inner:one']" in text
    assert "start >> steps['inner:two']" not in text


def test_the_same_workflow_gives_the_same_file():
    assert dag_of(read_workflow(FLOW, "n"), "n") == dag_of(read_workflow(FLOW, "n"), "n")


def test_a_value_of_a_run_is_never_more_shell(tmp_path):
    text = dag_of(read_workflow(FLOW, "nightly"), "nightly")
    script = steps_of(text)["features"]["bash_command"]
    # What Airflow puts into the environment when a run is triggered with such a date.
    environment = dict.fromkeys(parameters_of(text), HOSTILE)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={**os.environ, **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == f"out/{HOSTILE}" + "{{x}}"
    assert list(tmp_path.iterdir()) == []


def test_only_the_environment_of_a_step_is_a_template():
    text = dag_of(read_workflow(FLOW, "nightly"), "nightly")
    assert 'template_fields = ("env",)' in text
    assert "template_ext = ()" in text


def watched(text):
    """What the file puts before each command."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "WATCH":
            return str(ast.literal_eval(node.value))
    raise AssertionError("no WATCH")


def in_group(group):
    """Processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
def test_a_step_ends_when_its_runner_is_killed(tmp_path):
    watch = watched(dag_of(read_workflow(FLOW, "n"), "n"))
    script = "trap 'echo told > told; exit' TERM\necho $$ > new; mv new pid\n"
    script += "until [ -e go ]; do sleep 0.1; done\n"
    runs = (
        "import subprocess, sys\n"
        "sys.exit(subprocess.run(['bash', '-c', sys.argv[1]], start_new_session=True).returncode)"
    )
    runner = subprocess.Popen([sys.executable, "-c", runs, watch + script], cwd=tmp_path)
    try:
        until(lambda: (tmp_path / "pid").exists(), "it has not begun")
        pid = int((tmp_path / "pid").read_text())
        runner.kill()
        until(lambda: is_gone(pid), "it goes on")
        assert (tmp_path / "told").exists()
        until(lambda: not in_group(pid), "its watch stays")
    finally:
        (tmp_path / "go").touch()
        runner.kill()
        runner.wait()
    # One whose runner lives is left alone, whatever it is called.
    named = tmp_path / "a b) S 1 c"
    named.write_text("#!/bin/sh\nsleep 3\nexit 7\n")
    named.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", runs, f"{watch}exec './{named.name}'"],
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 7


def test_parameters_with_like_names_have_variables_of_their_own():
    flow = """
config: {a.b: "1", a-b: "2"}
nodes: [{name: n, type: command, config: {command: "echo ${a.b} ${a-b} ${azkaban.flow.execid}"}}]
"""
    text = dag_of(read_workflow(flow, "f"), "f")
    assert parameters_of(text) == {
        "P_A_B": "{{ params['a.b'] }}",
        "P_A_B_2": "{{ params['a-b'] }}",
        "P_FLOW_EXECID": "{{ run_id }}",
    }
    assert steps_of(text)["n"]["bash_command"].splitlines()[-1] == (
        'echo "${P_A_B}" "${P_A_B_2}" "${P_FLOW_EXECID}"'
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("0 30 2 ? * MON-FRI", "30 30 2 ? * *"), "cannot be expressed in the five fields"),
        (("condition: one_success_all_done", "condition: one_failed_all_done"), "cannot express"),
        (("> 0.9", "> 0.9 || all_done"), "cannot express the condition of `inner`"),
        (("name: last", "name: last one"), "`last one` is not a valid Airflow name"),
        (("out/${date}", "out/${dat}"), "`${dat}` has no value"),
        (("out/${date}", "out/${where}"), "refer to each other in a cycle"),
        (("type: noop}", "type: spark}"), "which only Azkaban runs"),
    ],
)
def test_what_airflow_cannot_say_is_refused(change, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        dag_of(read_workflow(FLOW.replace(*change), "nightly"), "nightly")


@pytest.mark.parametrize(
    "word", ["", "a b", "it's", "$HOME", "${x}", "a${x}b ${y}", "*", "~", "-n"]
)
def test_a_word_stays_one_word_in_a_shell(word):
    values = {"x": "1 $(false) '", "y": '"'}
    line = f"printf '[%s]' {word_of(word, str)}"
    done = subprocess.run(
        ["bash", "-c", line], env={"PATH": os.environ["PATH"], **values},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    expected = word.replace("${x}", values["x"]).replace("${y}", values["y"])
    assert done.stdout == f"[{expected}]"


def test_values_are_put_in_as_deep_as_they_go():
    assert expand("${a}/${k}", {"a": "${b}x", "b": "1"}, lambda name: name == "k") == "1x/${k}"


def test_a_crontab_line_runs_the_workflow_where_it_lies(tmp_path):
    folder = tmp_path / "it's 50%"
    folder.mkdir()
    workflow = read_workflow(FLOW, "nightly")
    text = crontab_of(
        workflow,
        folder / "nightly.flow",
        ("true",),
        {"--notify": "tell 'me & you'", "--outputs": ""},
    )
    assert "CRON_TZ=Europe/Berlin\n" in text
    line = text.splitlines()[-1]
    assert line.startswith("30 2 * * 1,2,3,4,5 cd ")
    assert not re.search(r"(?<!\\)%", line)
    command = line.split(" ", 5)[5].replace("\\%", "%")
    assert shlex.split(command)[-2:] == ["--notify", "tell 'me & you'"]
    subprocess.run(["sh", "-c", command], check=True, timeout=60)


def test_a_crontab_line_finds_submarine_with_the_short_path_of_cron(tmp_path: Path) -> None:
    (tmp_path / "nightly.flow").write_text(FLOW)
    words = ["workflow", "export", str(tmp_path / "nightly.flow"), "--to", "cron"]
    here = str(Path(sys.executable).with_name("submarine"))
    line = execute([*words, "--outputs", "out"], Frontend()).text.splitlines()[-1]
    assert line.endswith(f"{here} workflow run nightly.flow --scheduled --outputs out")
    line = execute([*words, "--program", "there -x"], Frontend()).text.splitlines()[-1]
    assert line.endswith("&& there -x workflow run nightly.flow --scheduled")


def test_cron_wants_a_schedule(tmp_path):
    workflow = read_workflow(FLOW.replace("schedule: 0 30 2 ? * MON-FRI\n", ""), "nightly")
    with pytest.raises(UsageError, match="has no schedule"):
        crontab_of(workflow, tmp_path / "nightly.flow", ("submarine",))


def test_export_writes_a_dag_and_the_notebooks_beside_it(tmp_path):
    (tmp_path / "nightly.flow").write_text(FLOW)
    (tmp_path / "train.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    words = ["workflow", "export", str(tmp_path / "nightly.flow"), "--to", "airflow"]
    with pytest.raises(UsageError, match="-o FOLDER"):
        execute(words, Frontend())
    dags = tmp_path / "dags"
    outcome = execute([*words, "-o", str(dags)], Frontend())
    written = sorted(path.relative_to(dags).as_posix() for path in dags.rglob("*.*"))
    assert written == ["nightly/nightly.flow", "nightly/train.ipynb", "nightly_dag.py"]
    assert set(outcome.value["files"]) == {str(dags / name) for name in written}
    assert (dags / "nightly_dag.py").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("condition", "output", "code"),
    [
        ("${train:accuracy} > 0.9", '{"accuracy": 0.93}', 0),
        ("${train:accuracy} > 0.9", '{"accuracy": 0.5}', 1),
        ("${train:accuracy} > 0.9", "", 1),
    ],
)
def test_holds_answers_by_its_exit_code(condition, output, code):
    outcome = execute(["workflow", "holds", condition, "--output", f"train={output}"], Frontend())
    assert outcome.exit_code == code


@pytest.mark.parametrize("words", [["${a:b} >"], ["${a:b} > 1", "--output", "a=[1]"],
                                   ["${a:b} > 1", "--output", "a"]])  # fmt: skip
def test_holds_refuses_what_it_cannot_read(words):
    with pytest.raises(UsageError):
        execute(["workflow", "holds", *words], Frontend())
