"""A run of a workflow on pages of a real jupyter-server: live for each of them, asked for once."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_workflows.azkaban.api import SessionFile, Settings
from submarine_workflows.runs import RunFolder, Runs
from tests.azkaban import server as azkabans
from tests.local.server.channel_page import Message, Page
from tests.local.server.jupyter_server import Server
from tests.waiting import PATIENCE, until

FLOW = """\
nodes:
  - {name: one, type: command, config: {command: "sh wait.sh <b>one"}}
  - {name: two, type: command, dependsOn: [one], config: {command: "true"}}
"""


def shows(words: str) -> Callable[[Message], bool]:
    """Whether a message is a picture with these words."""
    return lambda message: message["type"] == "workflow" and words in message["html"]


class Nightly:
    """A workflow whose first node waits for a file, started as a terminal does."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        folder.mkdir()
        (folder / "nightly.flow").write_text(FLOW)
        (folder / "wait.sh").write_text(f"while ! [ -e {folder}/go ]; do sleep 0.1; done\n")
        self.runs = Runs(Path(environment["SUBMARINE_STATE_DIR"]) / "workflows")

    def do(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "submarine_jobs.cli", "workflow", *words]
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                command, env=self.environment, cwd=self.folder, stdout=said, stderr=said
            )

    def begun(self) -> RunFolder:
        until(lambda: self.runs.of("nightly"), "the run has begun")
        return self.runs.of("nightly")[0]

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def pages(server: Server) -> Iterator[list[Page]]:
    made = [Page(server), Page(server)]
    yield made
    for page in made:
        page.close()


def test_every_page_sees_a_run_go_on_to_its_end(
    server: Server, pages: list[Page], tmp_path: Path
) -> None:
    nightly = Nightly(tmp_path / "here", server.environment)
    runner = nightly.do("run", "nightly.flow")
    try:
        run = nightly.begun().run
        for page in pages:
            page.subscribe(1, "workflow", run=run)
            first = page.until(shows(">RUNNING<"), PATIENCE)
            assert "&lt;b&gt;one" in first["html"]
            assert "<b>" not in first["html"]
        nightly.go()
        for page in pages:
            last = page.until(shows(">SUCCEEDED<"), PATIENCE)
            assert last["time"] >= first["time"]
            page.until(lambda m: m["type"] == "end", PATIENCE)
        late = Page(server)
        late.subscribe(1, "workflow", run=run)
        only = late.until(lambda m: m["type"] == "workflow", PATIENCE)
        assert ">SUCCEEDED<" in only["html"]
        late.until(lambda m: m["type"] == "end", PATIENCE)
        late.close()
    finally:
        nightly.go()
        assert runner.wait(120) == 0, (nightly.folder / "said").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"run": "nightly-20261122-023000-1f0a"}, "The user of this server has no run nightly-"),
        ({"run": "../../etc"}, "The user of this server has no run ../../etc"),
        ({"run": "azkaban:7", "url": "http://127.0.0.1:1"}, "No Azkaban server is configured."),
        ({"run": ""}, "`run` must be the id of a run."),
        ({"run": 7}, "`run` must be text of at most 500 characters."),
        ({"run": "x" * 501}, "`run` must be text of at most 500 characters."),
        ({"run": "x", "url": []}, "`url` must be text of at most 500 characters."),
        ({}, "`run` must be text of at most 500 characters."),
    ],
)
def test_what_cannot_be_known_is_a_mistake_and_not_asked_for_again(
    pages: list[Page], words: dict[str, object], said: str
) -> None:
    pages[0].subscribe(1, "workflow", **words)
    answer = pages[0].until(lambda m: m.get("id") == 1)
    assert (answer["type"], answer["code"]) == ("error", "usage")
    assert answer["error"].startswith(said)


def test_an_execution_at_azkaban_is_followed_by_the_server(
    server: Server, pages: list[Page], tmp_path: Path
) -> None:
    """With the server's own settings; no page and no kernel has a password."""
    page, config = pages[0], server.scratch / "config" / "jupyter-submarine"
    with azkabans.running(tmp_path / "azkaban", kill_seconds=0.3) as azkaban:
        (config / "azkaban").mkdir(parents=True)
        (config / "submarine.toml").write_text(
            f'[azkaban]\nurl = "{azkaban.url}"\nuser = "alice"\n'
        )
        password = config / "azkaban" / f"{azkaban.url[7:].replace(':', '_')}.password"
        password.touch(0o600)
        password.write_text("correct horse\n")
        nightly = Nightly(tmp_path / "there", server.environment)
        try:
            submit = nightly.do(
                *("submit", "nightly.flow", "--to", "azkaban", "--run", "--include", "wait.sh")
            )
            assert submit.wait(120) == 0, (nightly.folder / "said").read_text()
            said = (nightly.folder / "said").read_text()
            [run] = set(re.findall(r"azkaban:\d+", said))
            page.subscribe(1, "workflow", run=run, url=azkaban.url)
            page.until(shows(">RUNNING<"), PATIENCE)
            page.subscribe(2, "workflow", run=run, url="http://127.0.0.1:1")
            other = page.until(lambda m: m.get("id") == 2, PATIENCE)
            assert other["error"] == f"This server uses only the Azkaban server {azkaban.url}."
            page.subscribe(3, "workflow", run="azkaban:99", url=azkaban.url)
            assert page.until(lambda m: m.get("id") == 3, PATIENCE)["code"] == "usage"
            nightly.go()
            page.until(shows(">SUCCEEDED<"), PATIENCE)
            page.until(lambda m: m["type"] == "end", PATIENCE)
        finally:
            nightly.go()
            shutil.rmtree(config)


def test_no_output_makes_the_server_log_in(
    server: Server, pages: list[Page], tmp_path: Path
) -> None:
    """With address, user and password in the user's own settings, but no session yet."""
    page, config = pages[0], server.scratch / "config" / "jupyter-submarine"
    with azkabans.running(tmp_path / "azkaban") as azkaban:
        (config / "azkaban").mkdir(parents=True)
        (config / "submarine.toml").write_text(
            f'[azkaban]\nurl = "{azkaban.url}"\nuser = "alice"\n'
        )
        password = config / "azkaban" / f"{azkaban.url[7:].replace(':', '_')}.password"
        password.touch(0o600)
        password.write_text("correct horse\n")
        try:
            page.subscribe(1, "workflow", run="azkaban:1", url=azkaban.url)
            answer = page.until(lambda m: m.get("id") == 1, PATIENCE)
            assert azkaban.requests == []
            state = Path(server.environment["SUBMARINE_STATE_DIR"])
            SessionFile(state, Settings(azkaban.url, "alice")).write("over")
            page.subscribe(2, "workflow", run="azkaban:1", url=azkaban.url)
            later = page.until(lambda m: m.get("id") == 2, PATIENCE)
        finally:
            shutil.rmtree(config)
        assert answer["error"] == (
            f"There is no session at {azkaban.url}, and displaying an output does not log in."
        )
        assert "%submarine workflow status azkaban:1" in answer["fix"]
        assert later["error"] == answer["error"]
        assert azkaban.requests != []
        assert not [call for call in azkaban.requests if "login" in call]
