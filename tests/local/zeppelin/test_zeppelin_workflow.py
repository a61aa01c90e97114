"""A note's own workflow, without Zeppelin: written in a paragraph, run here, and by an Azkaban."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.client import Session
from submarine_jobs.config import load_config
from submarine_zeppelin.interface import Code, Kind
from submarine_zeppelin.submarine.job_index import ParagraphJobIndex
from tests.azkaban import server as servers
from tests.local.zeppelin.zeppelin_note import Note, ShownOutput
from tests.submission import cancel_unfinished
from tests.waiting import until

FLOW = """\
%submarine workflow nightly --schedule "0 30 2 ? * *"
# What the day brings.
config: {day: none}
nodes:
  - name: train
    cells: [Features, model.py, p-training]
    params: {day: "${day}"}
    job: {memory: 256M}
  - name: last
    type: noop
    dependsOn: [train]
"""


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Note]:
    """A note of the local backend; no job of its is left."""
    for name in [key for key in os.environ if key.startswith(("SUBMARINE_", "HADOOP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "workflows"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_TEST_FEATURES", str(tmp_path / "features"))
    monkeypatch.chdir(tmp_path)
    note = Note({})
    note.write("p-md", "%md\n# Nightly")
    note.write("p-model", "%submarine.python\ndef score(x):\n    return x / 10", "model.py")
    note.write("p-day", "%submarine.python(local)\nday = 'none'", "parameters")
    note.write(
        "p-features",
        "%submarine.python(local)\nimport os, pathlib\n"
        "pathlib.Path(os.environ['SUBMARINE_TEST_FEATURES']).write_text(day)",
        "Features",
    )
    note.write(
        "p-training",
        "%submarine.python(only)\nfrom model import score\nprint('accuracy', score(9))",
        "Training",
    )
    yield note
    (tmp_path / "go").touch()  # no run waits for it any more
    note.close()
    cancel_unfinished(Session(load_config().profile))


@pytest.mark.full
def test_a_paragraph_goes_the_whole_way_to_azkaban(
    note: Note, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note.write("p-flow", FLOW)
    assert note.run("p-flow").code is Code.KEEP
    (shown,) = note.outputs["p-flow"].messages
    assert shown.kind is Kind.HTML
    assert "<svg" in shown.data
    assert "<script" not in shown.data
    assert "next" in note.outputs["p-flow"].text
    kept = tmp_path / "state" / "notes" / "2JNOTE"
    assert {path.name for path in kept.iterdir()} == {"nightly.flow", "digits.ipynb"}
    with servers.running(tmp_path / "azkaban") as azkaban:
        monkeypatch.setenv("SUBMARINE_AZKABAN_USER", "alice")
        monkeypatch.setenv("SUBMARINE_AZKABAN_PASSWORD", "correct horse")
        monkeypatch.setenv("SUBMARINE_AZKABAN_URL", azkaban.url)
        note.write(
            "p-go", "%submarine workflow submit nightly --to azkaban --run -p day 2026-11-22"
        )
        assert note.run("p-go").code is Code.KEEP, note.outputs["p-go"].text
        (execution,) = azkaban.executions.values()
        carried = json.loads(azkaban.projects["nightly"].files["digits.ipynb"])
        assert execution.wait(180)
        note.write("p-how", f"%submarine workflow logs azkaban:{execution.execid} train")
        note.run("p-how")
        assert execution.root.status == "SUCCEEDED", note.outputs["p-how"].text
        assert azkaban.violations == []
    assert (tmp_path / "features").read_text() == "2026-11-22"
    titles = [cell["metadata"].get("title") for cell in carried["cells"]]
    assert titles == [None, None, "model.py", "parameters", "Features", "Training"]
    # Each node's command was executed, and the training was a job of its own.
    (record,) = Session(load_config().profile).jobs()
    assert record.state.value == "SUCCEEDED"
    assert (record.workflow, record.workflow_node) == ("nightly", "train")
    note.write("p-log", f"%submarine logs {record.job_id}")
    note.run("p-log")
    assert "accuracy 0.9" in note.outputs["p-log"].text


def test_a_workflow_runs_here_and_its_graph_renews_itself(note: Note, tmp_path: Path) -> None:
    go = tmp_path / "go"
    note.write(
        "p-flow",
        "%submarine\n\nworkflow small\n# first.job\ntype=command\n"
        f"command=sh -c 'until test -e {go}; do sleep 0.1; done'\n"
        "# second.job\ntype=noop\ndependencies=first\n",
    )
    assert note.run("p-flow").code is Code.KEEP, note.outputs["p-flow"].text
    note.write("p-run", "%submarine\nworkflow run small\nworkflow history")
    assert note.run("p-run").code is Code.KEEP, note.outputs["p-run"].text
    until(lambda: "0 of 2 nodes" in note.outputs["p-run"].text)
    # Another process of the interpreter goes on with it, and says the last word once.
    note.close()
    again = note.outputs["p-run"] = ShownOutput()
    note.write("p-help", "%submarine help")
    note.run("p-help")
    until(lambda: "0 of 2 nodes" in again.text)
    go.touch()
    until(lambda: "SUCCEEDED" in again.text)
    until(lambda: not ParagraphJobIndex(tmp_path / "state").unfinished())
    note.write("p-all", "%submarine\nworkflow status small\nlist")
    assert note.run("p-all").code is Code.KEEP
    assert "SUCCEEDED" in note.outputs["p-all"].text


def test_a_scheduled_paragraph_lasts_as_long_as_its_run(
    note: Note, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERPRETER_GROUP_ID", "submarine-isolated-2JNOTE-1795000000000")
    for name, command, code in (("good", "true", Code.KEEP), ("bad", "false", Code.ERROR)):
        flow = f"nodes: [{{name: a, type: command, config: {{command: '{command}'}}}}]"
        note.write(name, f"%submarine workflow {name}\n{flow}")
        note.run(name)
        note.write("p-run", f"%submarine workflow run {name}")
        assert note.run("p-run").code is code, note.outputs["p-run"].text
    assert "FAILED" in note.outputs["p-run"].text


def test_stop_ends_the_run_that_is_waited_for(note: Note, tmp_path: Path) -> None:
    flow = "nodes: [{name: a, type: command, config: {command: sleep 3600}}]"
    note.write("p-flow", f"%submarine workflow long\n{flow}")
    note.run("p-flow")
    note.write("p-run", "%submarine workflow run long --wait")
    running = note.start("p-run")
    until(lambda: "p-run" in note.outputs and "0 of 1 nodes" in note.outputs["p-run"].text)
    note.entry("Submarine").cancel(note.context("p-run"))
    assert running.end().code is Code.ERROR
    note.write("p-how", "%submarine workflow status long")
    note.run("p-how")
    until(lambda: "KILLED" in note.outputs["p-how"].text)


def test_what_is_wrong_has_the_paragraphs_lines(note: Note) -> None:
    note.write("p-flow", FLOW.replace("[train]", "[trained]").replace("0 30", "61 30"))
    assert note.run("p-flow").code is Code.ERROR
    said = note.outputs["p-flow"].text
    assert "Paragraph 6, line 1" in said
    assert "Paragraph 6, line 11: `last` depends on" in said
    note.write("p-flow", FLOW.replace("model.py,", "module.py,"))
    assert note.run("p-flow").code is Code.KEEP
    assert "The note has no paragraph called 'module.py'" in note.outputs["p-flow"].text


def test_keys_are_completed_below_the_first_line(note: Note) -> None:
    def proposed(typed: str) -> list[str]:
        found = note.entry("Submarine").completion(typed, len(typed), note.context("p-flow"))
        return [one.value for one in found]

    assert "dependsOn" in " ".join(proposed("workflow nightly\nnodes:\n  - name: a\n    depe"))
    assert "workflow" in proposed("list\nworkf")


def test_a_note_is_a_notebook_that_any_jupyter_reads(note: Note, tmp_path: Path) -> None:
    note.write("p-flow", FLOW)
    note.run("p-flow")
    path = tmp_path / "state" / "notes" / "2JNOTE" / "digits.ipynb"
    before = path.read_bytes()
    nbformat.validate(nbformat.read(path, as_version=4))
    note.run("p-flow")
    assert path.read_bytes() == before
