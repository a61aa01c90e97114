"""An execution of Azkaban's as a picture in a notebook, renewed until it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.commands import execute
from submarine_workflows.azkaban.api.executions import execution_of
from submarine_workflows.display import MIME_TYPE
from submarine_workflows.notebook import azkaban_run
from tests.azkaban import server as servers
from tests.azkaban.configured import configured
from tests.frontends import PictureFrontend
from tests.waiting import until

FLOW = """\
nodes:
  - {name: one, type: command, config: {command: "sh one.sh"}}
  - {name: two, type: command, dependsOn: [one], config: {command: "false"}}
"""


@pytest.fixture
def azkaban(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Azkaban]:
    monkeypatch.setattr(azkaban_run, "EVERY", 0.1)
    with configured(tmp_path, monkeypatch) as running:
        yield running


@pytest.mark.slow
def test_it_is_drawn_with_its_graph_and_renewed_until_its_end(
    azkaban: servers.Azkaban, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (tmp_path / "one.sh").write_text(f"while ! [ -e {go} ]; do sleep 0.1; done\n")
    (tmp_path / "nightly.flow").write_text(FLOW)
    frontend = PictureFrontend()
    started = execute(
        ["workflow", "submit", "nightly", "--to", "azkaban", "--run", "--include", "one.sh"],
        frontend,
    )
    run = started.value["run"]
    shown = execute(["workflow", "status", run], frontend)
    assert shown.value["run"] == run
    first = frontend.pictures[0]
    assert [node["dependsOn"] for node in first[MIME_TYPE]["nodes"]] == [[], ["one"]]
    assert f'href="{azkaban.url}/executor?execid=' in first["text/html"]
    go.touch()
    until(
        lambda: frontend.pictures[-1][MIME_TYPE]["status"] == "FAILED",
        lambda: frontend.pictures[-1]["text/plain"],
        60,
    )
    last = frontend.pictures[-1][MIME_TYPE]
    assert [node["status"] for node in last["nodes"]] == ["SUCCEEDED", "FAILED"]
    count = len(frontend.pictures)
    over = execute(["workflow", "status", run], frontend)
    assert "FAILED" in over.text
    assert "<svg" in str(over.html)
    assert len(frontend.pictures) == count


def test_nodes_stand_after_those_that_they_depend_on() -> None:
    inner = [{"id": "b", "nestedId": "f:b", "in": ["a"]}, {"id": "a", "nestedId": "f:a"}]
    nodes = [
        {"id": "report", "nestedId": "report", "in": ["train", "f", "gone"]},
        {"id": "f", "nestedId": "f", "in": ["train"], "nodes": inner},
        {"id": "train", "nestedId": "train"},
    ]
    found = execution_of({"flow": "x", "nodes": nodes}, 7)
    assert [node.path for node in found.walk()] == ["train", "f", "f:a", "f:b", "report"]
    circle = [{"id": "x", "in": ["y"]}, {"id": "y", "in": ["x"]}]
    assert len(execution_of({"flow": "x", "nodes": circle}, 7).nodes) == 2
