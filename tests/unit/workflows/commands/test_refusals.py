"""What `submarine workflow` says to words that are not enough or not meant so."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend

FLOW = """
nodes:
  - {name: data, type: noop, needs: [/data/_SUCCESS, "hdfs:///x"]}
  - {name: train, type: command, config: {command: echo x}, dependsOn: [data]}
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "nightly.flow"
    file.write_text(FLOW)
    return file


def test_no_command_at_all() -> None:
    with pytest.raises(UsageError, match=r"^workflow needs a command; it has .*, check, .*, run, "):
        execute(["workflow"], Frontend())


def test_a_workflow_that_is_not_there(flow: Path) -> None:
    for words in (["check", "weekly"], ["run", "weekly"], ["export", "weekly", "--to", "cron"]):
        with pytest.raises(SubmarineError, match=r"no workflow or file weekly.* .%%submarine"):
            execute(["workflow", *words], Frontend())


def test_several_files_go_into_a_folder(flow: Path) -> None:
    words = ["workflow", "export", flow.name, "--to", "airflow", "-o"]
    for place in ("dag.py", flow.name):
        with pytest.raises(UsageError, match=r"is not a folder\. Give a folder: -o FOLDER"):
            execute([*words, place], Frontend())
    assert [path.name for path in flow.parent.iterdir()] == ["nightly.flow"]
    assert execute([*words, "dags"], Frontend()).exit_code == 0


def test_a_node_that_waits_says_for_what(flow: Path) -> None:
    drawn = execute(["workflow", "graph", flow.name], Frontend()).text
    assert drawn.splitlines()[0].split() == [
        "data",
        *["waits", "for", "/data/_SUCCESS,", "hdfs:///x"],
    ]
