"""What a node runs, in words that are the same in every scheduler."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.errors import UsageError
from submarine_workflows.formats import read_workflow
from submarine_workflows.model import (
    ExecutionSettings,
    commands_of,
    environment_of,
    join_command,
    properties_of,
    split_command,
)

TEXT = """\
name: nightly
config: {date: "2026-11-22", env.TZ: UTC}
nodes:
  - name: features
    notebook: features.ipynb
    needs: ["hdfs:///data/{date}/_SUCCESS", {path: "-odd", timeout: 90s}]
  - name: train
    notebook: train.ipynb
    params: {date: "${date}", epochs: 3, fast: true, version: "1.0", note: ""}
    job: {worker: 2, tensorboard: true}
    dependsOn: [features]
  - name: report
    cells: [summary, plot]
    dependsOn: [train]
    condition: ${train:accuracy} > 0.9 && ${train:loss} < 1
  - name: deliver
    type: flow
    needs: [/tmp/stamp]
    dependsOn: [report]
    nodes:
      - name: a
        type: command
        config: {command: "echo '${date} and'", command.1: "ls  -l", command.3: never, env.TZ: CET}
      - {name: b, type: noop, dependsOn: [a]}
      - {name: c, type: spark, dependsOn: [a]}
"""
WORKFLOW = read_workflow(TEXT, "nightly")
NODES = {node.name: (flows, node) for flows, node in WORKFLOW.walk()}


def commands(
    name: str, settings: ExecutionSettings | None = None, fill: Callable[[str], str] = str
) -> list[list[str]]:
    flows, node = NODES[name]
    return commands_of(WORKFLOW, node, flows, settings or ExecutionSettings("7", "out"), fill)


def test_a_notebook_waits_for_its_data_and_runs_once_for_all_its_attempts():
    assert commands("features") == [
        ["submarine", "workflow", "await", "--timeout", "21600s", "--",
         "hdfs:///data/${date}/_SUCCESS"],
        ["submarine", "workflow", "await", "--timeout", "90s", "--", "-odd"],
        ["submarine", "run", "features.ipynb", "-o", "out/features.ipynb",
         "--run-id", "nightly/7/features", "--on-interrupt", "cancel"],
    ]  # fmt: skip


def test_parameters_keep_their_types_and_conditions_get_their_outputs():
    [words] = commands("train")
    text = " ".join(words)
    assert "-p date ${date} -p epochs 3 -p fast True -r version 1.0 -r note " in text
    assert "--job worker=2 --job tensorboard=true" in text
    assert text.endswith("--return accuracy,loss")


def test_cells_are_those_of_the_notebook_that_it_is_written_in():
    with pytest.raises(UsageError, match="the workflow has none"):
        commands("report")
    [words] = commands("report", ExecutionSettings(notebook="this.ipynb"))
    assert words[:6] == ["submarine", "run", "this.ipynb", "-o", "report.ipynb", "--cells"]
    assert words[6] == "summary,plot"


def test_a_command_is_filled_in_before_it_is_taken_apart_as_in_azkaban():
    fill = lambda text: text.replace("${date}", "a' b")  # noqa: E731
    assert commands("a", fill=fill)[1:] == [["echo", "a", "b", "and"], ["ls", "-l"]]
    assert commands("a")[1:] == [["echo", "${date} and"], ["ls", "-l"]]


def test_what_a_flow_needs_is_waited_for_where_it_begins():
    assert commands("deliver") == []
    assert commands("a")[0][-1] == "/tmp/stamp"
    assert commands("b") == []


def test_a_type_that_azkaban_alone_runs_is_refused():
    with pytest.raises(UsageError, match="type `spark`, which only Azkaban runs"):
        commands("c")


def test_a_nodes_own_properties_win_over_those_of_the_flows_around_it():
    flows, node = NODES["a"]
    assert environment_of(properties_of(WORKFLOW, node, flows)) == {"TZ": "CET"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b c", ["a", "b", "c"]),
        ("a 'b c'", ["a", "b c"]),
        ("a e='b c'", ["a", "e=b c"]),
        ("  a   b ", ["a", "b"]),
        ("a '' b", ["a", "b"]),
        ('a "it\'s" \\n', ["a", "it's", "\\n"]),
        ("a\tb", ["a\tb"]),
        ("'open to the end", ["open to the end"]),
        ("", []),
    ],
)
def test_azkabans_way_to_take_a_line_apart(text, words):
    assert split_command(text) == words


@given(st.lists(st.text(min_size=1).filter(lambda word: not set(word) & set("\r\n")), max_size=6))
def test_a_line_is_taken_apart_into_the_words_that_it_was_made_of(words):
    assert split_command(join_command(words)) == words


@pytest.mark.parametrize("word", ["", "two\nlines"])
def test_what_no_line_can_say_is_refused(word):
    with pytest.raises(ValueError, match="Azkaban"):
        join_command(["echo", word])


def test_a_parameter_is_quoted_since_its_value_may_have_spaces():
    assert join_command(["-p", "date", "${date}"]) == "-p date '${date}'"
