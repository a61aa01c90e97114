"""Workflows out of YAML and job files: what is read, and the line of what is not right."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from submarine_jobs.errors import UsageError
from submarine_workflows.formats import open_workflow, read_jobs, read_properties, read_workflow
from submarine_workflows.model import Kind, WorkflowError, check

NIGHTLY = """\
schedule: 0 30 2 ? * *
timezone: Europe/Berlin
config:
  date: "2026-11-22"
nodes:
  - name: features
    notebook: features.ipynb
    needs:
      - hdfs:///data/{date}/_SUCCESS
      - {path: /tmp/x, timeout: 90m}
  - name: train
    notebook: train.ipynb
    params: {date: "${date}", epochs: 3, fast: true, when: 2026-01-02}
    job: {worker: 2, gpu: 1}
    dependsOn: [features]
  - name: report
    cells: [summary]
    dependsOn: [train]
    condition: one_success && ${train:rows} > 5
"""
# As Azkaban's own documentation has a flow: types, embedded flows, a trigger.
AZKABAN_KEYS = """\
config:
  failure.emails: ops@example.com
trigger:
  maxWaitMins: 10
  schedule: {type: cron, value: 0 0 1 ? * *}
nodes:
  - name: jobC
    type: noop
    dependsOn: [inner]
  - name: inner
    type: flow
    nodes:
      - {name: a, type: command, config: {command: echo a}}
      - {name: b, type: spark, dependsOn: [a], config: {class: org.example.Main}}
"""


def wrong(text: str) -> list[str]:
    """What is said of ``text``, by reading or by checking."""
    try:
        return [str(problem) for problem in check(read_workflow(text, "flow"))]
    except WorkflowError as error:
        return [str(problem) for problem in error.problems]


def nodes(*lines: str) -> str:
    return "nodes:\n" + "\n".join(lines)


def test_a_workflow_of_notebooks_is_read():
    found = read_workflow(NIGHTLY, "nightly")
    features, train, report = found.nodes
    assert (found.name, found.schedule, found.schedule_line) == ("nightly", "0 30 2 ? * *", 1)
    assert (features.kind, features.line) == (Kind.NOTEBOOK, 6)
    assert [(need.url, need.timeout) for need in features.needs] == [
        ("hdfs:///data/{date}/_SUCCESS", 6 * 3600.0),
        ("/tmp/x", 5400.0),
    ]
    assert train.params == {"date": "${date}", "epochs": 3, "fast": True, "when": "2026-01-02"}
    assert train.job == {"worker": 2, "gpu": 1}
    assert (report.kind, report.cells, report.depends_on) == (Kind.CELLS, ("summary",), ("train",))
    assert check(found) == []


def test_azkabans_own_files_are_accepted():
    found = read_workflow(AZKABAN_KEYS, "daily")
    assert (found.schedule, found.config) == ("0 0 1 ? * *", {"failure.emails": "ops@example.com"})
    inner = found.nodes[1]
    assert [node.kind for node in inner.nodes] == [Kind.COMMAND, Kind.OTHER]
    assert [(len(flows), node.name) for flows, node in found.walk()] == [
        (0, "jobC"), (0, "inner"), (1, "a"), (1, "b"),
    ]  # fmt: skip
    assert check(found) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes: [", "This is not valid YAML"),
        ("a: 1\na: 2", "line 2: `a` is defined twice, first in line 1."),
        ("", "A workflow needs `nodes:`"),
        ("- x", "A workflow must be a map of `key: value`, not a list."),
        (nodes("- {name: a, notebook: x, dependson: [b]}"), "did you mean `dependsOn`?"),
        (nodes("- {notebook: x}"), "line 2: A node needs a `name:`."),
        (nodes("- {name: a}"), "`a` has nothing to run"),
        (nodes("- {name: a, notebook: x, cells: [y]}"), "use one of them"),
        (nodes("- {name: a, notebook: [x]}"), "One value is expected here, not a list."),
        (nodes("- {name: a, notebook: x, params: [1]}"), "`params:` must be a map"),
        (nodes("- {name: a, notebook: x, job: {gpu: [1]}}"), "`job:` must be one value"),
        (nodes("- {name: a, notebook: x, needs: {timeout: 3m}}"), "requires a `path:`"),
        (nodes("- {name: a, notebook: x, needs: {path: y, timeout: soon}}"), "soon"),
        (nodes("- {name: a, type: command}"), "has no `command` under `config:`"),
        (nodes("- {name: a, type: flow}"), "is a flow but has no `nodes:`"),
        (nodes("- {name: a, type: notebook}"), "has no `notebook:`"),
        (nodes("- {name: ROOT, type: noop}"), "`ROOT` is reserved by Azkaban"),
        (nodes("- {name: 'a/../b', type: noop}"), "`a/../b` is not a valid name"),
        (nodes("- {name: a, type: noop}", "- {name: a, type: noop}"), "twice, first in line 2"),
        (nodes("- {name: abc, type: noop}", "- {name: b, type: noop, dependsOn: [abd]}"),
         "line 3: `b` depends on `abd`, which does not exist; did you mean `abc`?"),
        (nodes("- {name: a, type: noop, dependsOn: [a]}"), "`a` -> `a`"),
        (nodes("- {name: a, type: noop, condition: all_done}"), "but no dependencies"),
        (nodes("- {name: a, notebook: x, params: {d: '${day}'}}"), "uses ${day}"),
        ("schedule: 61 * * * *\n" + nodes("- {name: a, type: noop}"), "line 1: `61 * * * *`"),
        ("timezone: Mars/Base\n" + nodes("- {name: a, type: noop}"), "Base` is not a time zone"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text, sentence):
    said = wrong(text)
    assert any(sentence in one for one in said), said


def test_a_cycle_is_named_once_from_end_to_end():
    text = nodes(
        "- {name: free, type: noop, dependsOn: [c]}",
        "- {name: a, type: noop, dependsOn: [c]}",
        "- {name: b, type: noop, dependsOn: [a]}",
        "- {name: c, type: noop, dependsOn: [b]}",
    )
    (said,) = wrong(text)
    assert said.startswith("line 3: These nodes depend on each other in a cycle")
    assert said.count("->") == 3


def test_a_condition_may_only_ask_those_before():
    text = nodes(
        "- {name: a, type: noop}",
        "- {name: b, type: noop, dependsOn: [a]}",
        "- {name: c, type: noop, dependsOn: [b], condition: '${a:n} > 1 && ${d:n} > 1'}",
        "- {name: d, type: noop}",
    )
    assert wrong(text) == [
        "line 4: `c` uses `n` of `d` without depending on it: `d` may not have run yet."
    ]


@pytest.mark.slow
def test_a_bomb_of_aliases_is_refused_at_once():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "more values than a workflow may have" in wrong("\n".join(lines))[0]
    deep = "nodes: " + "[" * 3000 + "]" * 3000
    assert len(wrong(deep)) == 1


def test_properties_are_javas():
    text = "# c\n! c\na=1\n  b : two \\\n   words\nc\\ d = e\\=f\\u00e9\nempty\n a  x=y\n"
    found = {key: value for key, (value, _) in read_properties(text).items()}
    assert found == {"a": "x=y", "b": "two words", "c d": "e=fé", "empty": ""}
    assert read_properties(text)["b"][1] == 4


def test_job_files_are_a_workflow():
    files = {
        "x/one.job": "type=command\ncommand=echo ${day}\n",
        "x/two.job": "type=noop\ndependencies= one ,three\n",
        "x/three.job": "type=noop\n",
        "x/common.properties": "day=monday\n",
    }
    found = read_jobs(files, "old")
    when = {**files, "z.job": "type=noop\ndependencies=b\ncondition=one_success && ${b:x} > 1"}
    assert read_jobs(when, "old").nodes[-1].condition == "one_success && ${b:x} > 1"
    assert [(node.name, node.kind, node.depends_on) for node in found.nodes] == [
        ("one", Kind.COMMAND, ()),
        ("three", Kind.NOOP, ()),
        ("two", Kind.NOOP, ("one", "three")),
    ]
    assert check(found) == []
    with pytest.raises(WorkflowError, match=r"b\.job: A job file needs a line `type=`"):
        read_jobs({"b.job": "command=x"}, "old")
    with pytest.raises(WorkflowError, match=r"no \.job file"):
        read_jobs({"readme.md": ""}, "old")


def test_a_folder_of_job_files_has_its_own_name_however_it_is_called(tmp_path, monkeypatch):
    folder = tmp_path / "old.jobs"
    folder.mkdir()
    (folder / "one.job").write_text("type=noop\ndependencies=tow\n")
    monkeypatch.chdir(folder)
    assert [open_workflow(path).name for path in (Path(), folder)] == ["old.jobs"] * 2
    told = [str(problem) for problem in check(open_workflow(Path()))]
    assert told == ["`one` depends on `tow`, which does not exist; the workflow has: one."]


def test_files_folders_and_zips_are_opened(tmp_path):
    (tmp_path / "nightly.flow").write_text(NIGHTLY)
    assert open_workflow(tmp_path / "nightly.flow").name == "nightly"
    assert len(open_workflow(tmp_path).nodes) == 3
    with zipfile.ZipFile(tmp_path / "project.zip", "w") as archive:
        archive.writestr("p.project", "azkaban-flow-version: 2.0")
        archive.writestr("flows/daily.flow", AZKABAN_KEYS)
    assert open_workflow(tmp_path / "project.zip").name == "daily"
    (tmp_path / "second.flow").write_text(NIGHTLY)
    with pytest.raises(UsageError, match="has 2 flows"):
        open_workflow(tmp_path)
    for name, data in (("bad.zip", b"PK"), ("bad.flow", b"\xff\xfe\xff"), ("x.txt", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError):
            open_workflow(tmp_path / name)
    with pytest.raises(UsageError, match="cannot be read"):
        open_workflow(tmp_path / "none.flow")


@pytest.mark.slow
def test_a_chain_of_two_thousand_nodes_is_checked_to_its_end():
    """Deep enough for whatever would go down it by recursion."""
    chain = [f"- {{name: n{i}, type: noop, dependsOn: [{f'n{i - 1}' if i else ''}]}}"
             for i in range(2000)]  # fmt: skip
    assert wrong(nodes(*chain)) == []
    chain[0] = "- {name: n0, type: noop, dependsOn: [n1999]}"
    (said,) = wrong(nodes(*chain))
    assert said.count("->") == 2000


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ("{gpus: 1}", "`a`: job: 'gpus' is not an option that can be set here. Did you mean gpu?"),
        ("{gpu: many}", "`a`: --gpu: The number of GPUs must be a whole number from 0, not 'many'"),
        ("{memory: lots}", "'lots' is not a size of memory"),
        ("{gpus: '${count}'}", "'gpus' is not an option"),
    ],
)
def test_options_of_a_job_are_known_before_it_runs(job: str, sentence: str) -> None:
    text = f"config: {{count: '1'}}\nnodes:\n  - {{name: a, notebook: n.ipynb, job: {job}}}\n"
    (problem,) = check(read_workflow(text, "w"))
    assert problem.line == 3
    assert sentence in problem.sentence


def test_options_of_a_job_that_are_right() -> None:
    job = "{worker: 2, gpu: '${count}', memory: 8G, wait: true}"
    text = f"config: {{count: '1'}}\nnodes:\n  - {{name: a, notebook: n.ipynb, job: {job}}}\n"
    assert check(read_workflow(text, "w")) == []


def test_a_tab_is_called_a_tab() -> None:
    for text, line in (("nodes:\n\t- name: a\n", 2), ("nodes:\n  - name: a\n\t  type: noop\n", 3)):
        with pytest.raises(WorkflowError, match=r"This is not valid YAML: .* tab") as caught:
            read_workflow(text, "w")
        assert [one.line for one in caught.value.problems] == [line]


def test_a_problem_is_reported_at_its_own_line_and_not_at_that_of_the_node() -> None:
    text = """\
schedule: 0 30 2 ? * *
timezone: Europe/Berln
config: {retries: few}
nodes:
  - name: a
    type: noop
  - name: b
    notebook: b.ipynb
    params:
      day: ${date}
      hour: "${hour}"
    job:
      worker: 2
      memory: 8Q
    config:
      retries: "-1"
      retry.backoff: ${pause}
    dependsOn:
      - a
      - c
    condition: all_sucess
"""
    told = {problem.line: problem.sentence for problem in check(read_workflow(text, "n"))}
    assert {line: sentence.split("`")[1] for line, sentence in told.items()} == {
        0: "retries", 2: "Europe/Berln", 10: "b", 11: "b", 14: "b", 16: "b", 17: "b", 20: "b",
        21: "b",
    }  # fmt: skip
    assert told[0] == "`retries` under `config:` must be a whole number of at least 0, not `few`."
    assert "${date}" in told[10]
    assert "--memory: '8Q'" in told[14]
    assert (
        told[16] == "`b`: `retries` under `config:` must be a whole number of at least 0, not `-1`."
    )
    assert "${pause}" in told[17]
    assert "depends on `c`" in told[20]
    assert "is not a condition" in told[21]
