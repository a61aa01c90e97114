"""`%%submarine workflow NAME`: its text, the file that keeps it, its picture, Tab in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from submarine_jobs.commands import CellBody, complete, execute
from submarine_jobs.commands.grammar import complete_below, explain_below
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.program import CellCollection, read_notebook
from submarine_workflows.display import MIME_TYPE, NextCommand, NodeState, RunState, run_output
from submarine_workflows.formats import open_workflow, read_workflow
from submarine_workflows.model import WorkflowError
from submarine_workflows.notebook import saved_file
from tests.frontends import PictureFrontend

TEXT = """\
# two steps
nodes:
  - name: features
    notebook: features.ipynb
  - name: train
    cells: [summary]
    dependsOn: [features]
"""
LINE = ["workflow", "nightly", "--schedule", "0 30 2 ? * *", "--timezone", "Europe/Berlin"]


class Notebook(PictureFrontend):
    """A notebook's front end with a saved document, or with none."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(answer=False)
        self.collection = CellCollection()
        if path is not None:
            self.collection.follow(read_notebook(path))


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    summary = new_code_cell("print(1)", metadata={"tags": ["summary"]})
    document = new_notebook(cells=[new_markdown_cell("# Plots"), summary])
    path = tmp_path / "digits.ipynb"
    nbformat.write(document, path)
    nbformat.write(new_notebook(), tmp_path / "features.ipynb")
    return path


def run(words: list[str], text: str, frontend: Frontend, first_line: int = 2) -> Outcome:
    return execute(words, frontend, CellBody(text, first_line, "[3]"))


def test_the_cell_is_kept_beside_the_notebook_and_the_file_means_the_same(saved: Path) -> None:
    frontend = Notebook(saved)
    outcome = run(LINE, TEXT, frontend)
    file = saved.with_name("nightly.flow")
    assert file == saved_file("nightly", frontend)
    assert saved_file("nightly", Notebook(None)) != file
    first, *lines = file.read_text().splitlines()
    assert first == "# Written by %%submarine workflow in digits.ipynb; change it in that cell."
    assert lines[-len(TEXT.splitlines()) :] == TEXT.splitlines()
    workflow = open_workflow(file)
    assert (workflow.name, workflow.schedule, workflow.timezone, workflow.notebook) == (
        "nightly", "0 30 2 ? * *", "Europe/Berlin", "digits.ipynb",
    )  # fmt: skip
    assert [node.name for node in workflow.nodes] == ["features", "train"]
    assert outcome.value["notices"] == []
    assert len(outcome.value["next"]) == 3
    json.dumps(outcome.value)
    json.dumps(dict(outcome.mime))


def test_the_same_cell_leaves_the_file_alone_and_a_changed_one_replaces_it(saved: Path) -> None:
    frontend = Notebook(saved)
    run(LINE, TEXT, frontend)
    file = saved.with_name("nightly.flow")
    before = file.stat()
    run(LINE, TEXT, frontend)
    assert file.stat().st_ino == before.st_ino
    run(LINE, TEXT.replace("summary", "plots"), frontend)
    assert "plots" in file.read_text()
    assert sorted(path.name for path in saved.parent.iterdir()) == [
        "digits.ipynb", "features.ipynb", "nightly.flow",
    ]  # fmt: skip


def test_what_no_cell_or_another_notebook_has_written_stays(saved: Path) -> None:
    file = saved.with_name("nightly.flow")
    file.write_text("nodes: []\n")
    with pytest.raises(UsageError, match="was not written by a cell"):
        run(LINE, TEXT, Notebook(saved))
    assert file.read_text() == "nodes: []\n"
    file.unlink()
    run(LINE, TEXT, Notebook(saved))
    other = saved.with_name("other.ipynb")
    other.write_bytes(saved.read_bytes())
    with pytest.raises(UsageError, match=r"written in digits\.ipynb"):
        run(LINE, TEXT, Notebook(other))
    # A notebook that was renamed takes its workflow along.
    saved.unlink()
    run(LINE, TEXT, Notebook(other))
    assert "in other.ipynb;" in file.read_text()


@pytest.mark.parametrize(
    ("words", "text", "sentence"),
    [
        (LINE, TEXT.replace("notebook", "notebok"), r"Cell \[3\], line 5: A node has no `notebok"),
        (LINE, TEXT.replace("[features]", "[feature]"), r"Cell \[3\], line 8: `train` depends on"),
        (LINE, "schedule: 0 0 1 ? * *\n" + TEXT, r"Cell \[3\], line 1: --schedule is .* below"),
        (LINE, "name: other\n" + TEXT, r"line 1: It is named `nightly` here and `other` below"),
        ([*LINE[:3], "0 30 25 ? * *"], TEXT, r"Cell \[3\], line 1: "),
        (LINE, "nodes: ]", r"Cell \[3\], line 2: This is not valid YAML"),
        (LINE, "# a.job\ntype=command\n\n# a.job\n", r"line 5: `a\.job` is defined twice.* line 2"),
        (LINE, "# a.job\n\ncommand=x\n", r"Cell \[3\], line 2: A job file needs a line `type=`"),
        (LINE, "# a.job\ntype=flow\n", r"Cell \[3\], line 3: Embedded flows"),
        (LINE, "# a.job\ntype=noop\n# b.job\ntype=noop\ndependencies=c", "line 4: `b` depends"),
        (["workflow", "../up"], TEXT, "is not a valid workflow name"),
        (["workflow"], TEXT, "workflow needs NAME"),
        ([*LINE, "--too"], TEXT, "No such option --too of workflow; did you mean --to"),
    ],
)
def test_a_problem_is_reported_with_the_line_of_the_cell_and_nothing_is_kept(
    saved: Path, words: list[str], text: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run(words, text, Notebook(saved))
    assert re.search(sentence, str(caught.value)), str(caught.value)
    assert not list(saved.parent.glob("*.flow"))


def test_lines_are_counted_from_where_the_text_begins(saved: Path) -> None:
    with pytest.raises(WorkflowError) as caught:
        run(LINE, TEXT.replace("notebook", "notebok"), Notebook(saved), first_line=4)
    assert {problem.line for problem in caught.value.problems} >= {7}


def test_azkabans_job_files_below_each_other_are_a_workflow_too(saved: Path) -> None:
    text = (
        "\n# foo.job\ntype=command\ncommand=echo 'a: b'\n\n# bar.job\ntype=noop\ndependencies=foo\n"
    )
    run(["workflow", "jobs"], text, Notebook(saved))
    workflow = open_workflow(saved.with_name("jobs.flow"))
    nodes = {node.name: (node.depends_on, dict(node.config)) for node in workflow.nodes}
    assert nodes == {"foo": ((), {"command": "echo 'a: b'"}), "bar": (("foo",), {})}


@pytest.mark.parametrize(
    "text", ['{"nodes": [{"name": "a", "type": "noop"}]}', "  nodes:\n  - {name: a, type: noop}"]
)
def test_text_that_nothing_can_stand_above_is_kept_all_the_same(saved: Path, text: str) -> None:
    run(LINE, text, Notebook(saved))
    workflow = open_workflow(saved.with_name("nightly.flow"))
    assert (workflow.schedule, [node.name for node in workflow.nodes]) == ("0 30 2 ? * *", ["a"])


def test_what_is_not_there_yet_is_said(saved: Path) -> None:
    saved.with_name("features.ipynb").unlink()
    text = TEXT.replace("[summary]", "[Plots, sumary]")
    told = run(LINE, text, Notebook(saved)).value["notices"]
    assert told[0] == "`features` runs features.ipynb, which does not exist yet."
    assert "no code cell called 'sumary'" in told[1]
    assert len(told) == 2


def test_cells_need_a_notebook_that_was_saved(saved: Path) -> None:
    with pytest.raises(UsageError, match="Save the notebook"):
        run(["workflow", "nightly"], TEXT, Notebook(None))
    run(["workflow", "nightly"], f"notebook: digits.ipynb\n{TEXT}", Notebook(None))


def test_the_picture_has_three_forms_without_a_script_of_anybody() -> None:
    workflow = read_workflow(TEXT.replace("features", "<script>x</script>"), "<img src=x>")
    state = NodeState("FAILED", 100.0, 130.0, 1, "<script>boom\x1b[31m</script>")
    nodes = {"<script>x</script>": state, "train": NodeState("QUEUED")}
    running = RunState("r-1", "FAILED_FINISHING", 90.0, None, nodes)
    bundle = run_output(workflow, running, [NextCommand("<b>do</b>", "<i>it</i>")], now=150.0)
    html = bundle["text/html"]
    assert "<script" not in html
    assert "<img" not in html
    assert "<b>" not in html
    root = ElementTree.fromstring(html.replace("&nbsp;", " "))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "div", "strong", "span", "code", "svg", "g", "title", "rect", "text", "circle", "path",
        "table", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert "\x1b" not in bundle["text/plain"]
    assert "FAILED_FINISHING after 1 min 00 s, 1 of 2 nodes" in bundle["text/plain"]
    assert "failed 30 s, try 2" in bundle["text/plain"]
    plain = json.loads(json.dumps(bundle[MIME_TYPE]))
    assert [node["status"] for node in plain["nodes"]] == ["FAILED", "QUEUED"]
    assert plain["run"] == "r-1"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("n", ["nodes:", "notebook:"]),
        ("nodes:\n  - name: a\n    dep", ["dependsOn:"]),
        ("nodes:\n  - ", None),
        ("nodes:\n  - name: a\n    config:\n      ret", ["retries:", "retry.backoff:"]),
        ("nodes:\n  - name: a\n    params:\n      d", []),
        ("config:\n  da", []),
        ("nodes:\n  - name: feat\n  - {name: b, dep", ["dependsOn:"]),
        ("nodes:\n  - name: feat\n  - name: fetch\n    dependsOn: [feat, fe", ["feat", "fetch"]),
        ("nodes:\n- name: a\n  condition: one_f", ["one_failed", "one_failed_all_done"]),
        ("nodes:\n- name: a\n  type: no", ["noop"]),
        ("nodes:\n- name: a\n  notebook: fea", []),
    ],
)
def test_tab_knows_the_keys_and_the_nodes(before: str, words: list[str] | None) -> None:
    found = complete_below("workflow", before)
    if words is None:
        assert {"name:", "notebook:", "cells:", "dependsOn:"} <= set(found)
    else:
        assert found == words


def test_a_key_has_a_line_of_help() -> None:
    assert "ended before it" in (explain_below("workflow", "nodes:\n  - dependsOn") or "")
    assert "Number of retries" in (
        explain_below("workflow", "nodes:\n- config:\n    retries") or ""
    )
    assert explain_below("workflow", "nodes:\n  - name: nonsense") is None


def test_it_is_handed_over_from_the_cell(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(saved.parent / "state"))
    frontend = Notebook(saved)
    outcome = run([*LINE[:4], "--to", "cron"], TEXT, frontend)
    assert re.search(r"^30 2 \* \* \* .*workflow run .*nightly\.flow", outcome.text, re.M)
    assert "<svg" in frontend.pictures[0]["text/html"]
    run([*LINE, "--to", "airflow"], TEXT, frontend)
    dags = [path for path in saved.parent.rglob("*.py") if "DAG" in path.read_text()]
    assert len(dags) == 1
    with pytest.raises(UsageError, match="--run cannot be combined with --to cron"):
        run([*LINE, "--run", "--to", "cron"], TEXT, frontend)
    with pytest.raises(SubmarineError, match="Azkaban"):
        run([*LINE, "--to", "azkaban"], TEXT, frontend)  # none is configured


def test_a_name_means_the_workflow_of_a_cell_wherever_the_kernel_stands(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontend = Notebook(saved)
    run(["workflow", "elsewhere"], TEXT, frontend)
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))
    assert execute(["workflow", "check", "elsewhere"], frontend).value["nodes"] == 2
    shown = execute(["workflow", "graph", "elsewhere"], frontend)
    assert MIME_TYPE in shown.mime
    assert "<svg" in str(shown.html)
    assert "elsewhere" in complete(["workflow", "run", "else"], frontend)
    assert complete(["workflow", "run", "elsewhere", "tr"], frontend) == ["train"]
    assert execute(["workflow", "check", str(saved.with_name("elsewhere.flow"))], Frontend())


def test_a_run_without_a_person_checks_and_draws_and_writes_nothing(saved: Path) -> None:
    run(LINE, TEXT, Notebook(saved))
    file = saved.with_name("nightly.flow")
    before = file.read_text()
    frontend = Notebook(None)  # papermill tells no kernel where its notebook lies
    frontend.interactive = False
    outcome = run(LINE, TEXT.replace("[features]", "[]"), frontend)
    assert "Not saved" in outcome.text
    assert "<svg" in str(outcome.html)
    assert file.read_text() == before
    with pytest.raises(WorkflowError):
        run(LINE, TEXT.replace("[features]", "[other]"), frontend)


def test_a_large_graph_keeps_its_size_in_a_box_that_is_pushed(saved: Path) -> None:
    nodes = "".join(f"- {{name: n{number}, type: noop}}\n" for number in range(60))
    html = str(run(LINE, f"nodes:\n{nodes}", Notebook(saved)).html)
    assert re.search(r"<svg [^>]*style=\"[^\"]*max-width:none", html)
    assert re.search(r"<div style=\"[^\"]*overflow:auto;max-height:\d+px[^\"]*\"><svg", html)


def test_words_in_backticks_are_code_and_stay_harmless(saved: Path) -> None:
    text = "nodes:\n- {name: a, notebook: '<i>`<b>x</b>`</i>.ipynb'}\n"
    html = str(run(LINE, text, Notebook(saved)).html)
    assert re.search(r"<code [^>]*>a</code> runs &lt;i&gt;<code [^>]*>&lt;b&gt;x", html)
    assert "<b>" not in html
    assert "<i>" not in html
