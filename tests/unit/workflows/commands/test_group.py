"""`submarine workflow check|graph`, and the picture of a workflow."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.frontends import Frontend
from submarine_workflows.display import as_svg
from submarine_workflows.display.drawing import columns
from submarine_workflows.formats import read_workflow
from submarine_workflows.model import WorkflowError

TEXT = """\
schedule: 0 30 2 ? * *
nodes:
  - {name: report, type: command, config: {command: "echo '<script>'"}, dependsOn: [train, eval]}
  - {name: eval, notebook: eval.ipynb, dependsOn: [features]}
  - {name: train, notebook: train.ipynb, dependsOn: [features]}
  - {name: features, notebook: features.ipynb}
"""


def test_check_says_what_is_right_and_when_it_runs(tmp_path):
    file = tmp_path / "nightly.flow"
    file.write_text(TEXT)
    for name in ("eval", "features"):
        (tmp_path / f"{name}.ipynb").touch()
    outcome = execute(["workflow", "check", str(file)], Frontend())
    assert outcome.exit_code == 0
    assert outcome.text.startswith("nightly: 4 nodes. Next runs by its schedule")
    assert outcome.text.endswith("\n`train` runs train.ipynb, which does not exist yet.")
    assert len(outcome.value["notices"]) == 1
    (tmp_path / "train.ipynb").touch()
    outcome = execute(["workflow", "check", str(file)], Frontend())
    assert outcome.text.startswith("nightly: 4 nodes, no problems. Next runs by its schedule")
    assert outcome.value["notices"] == []
    assert len(outcome.value["next"]) == 3


def test_check_says_all_that_is_wrong(tmp_path):
    file = tmp_path / "nightly.flow"
    file.write_text(TEXT.replace("[features]", "[feature]"))
    with pytest.raises(WorkflowError) as refused:
        execute(["workflow", "check", str(file)], Frontend())
    assert refused.value.exit_code == 2
    assert [str(problem).partition(" which")[0] for problem in refused.value.problems] == [
        "nightly.flow, line 4: `eval` depends on `feature`,",
        "nightly.flow, line 5: `train` depends on `feature`,",
    ]


def test_a_node_stands_after_all_that_it_waits_for(tmp_path):
    workflow = read_workflow(TEXT, "nightly")
    assert [[node.name for node in column] for column in columns(workflow.nodes)] == [
        ["features"], ["eval", "train"], ["report"],
    ]  # fmt: skip
    file, picture = tmp_path / "nightly.flow", tmp_path / "nightly.svg"
    file.write_text(TEXT)
    outcome = execute(["workflow", "graph", str(file), "--svg", str(picture)], Frontend())
    assert outcome.text.splitlines()[0].split() == ["features", "features.ipynb"]
    assert outcome.text.splitlines()[-1] == f"The drawing is in {picture}."
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")
    assert picture.read_text() in str(outcome.html)


def test_a_picture_is_xml_with_no_script_of_anybody():
    name = "<script>alert(1)</script>"
    workflow = read_workflow(TEXT, name)
    picture = as_svg(workflow, {"train": "RUNNING", "eval": "<b>"})
    root = ElementTree.fromstring(picture)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "path", "g", "title", "rect", "text", "circle"}
    assert "running" in picture
