"""A project's file in real processes: a terminal asks, all that cannot ask refuses, jobs run on."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.azkaban import server as azkabans
from tests.local.server.channel_page import Page
from tests.local.server.jupyter_server import Server, running
from tests.waiting import PATIENCE

SUBMARINE = (sys.executable, "-P", "-m", "submarine_jobs.cli")
FLOW = """\
nodes:
  - {name: one, type: command, config: {command: "submarine config --json"}}
  - {name: two, needs: asks.py, type: command, config: {command: "true"}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a project's file, which names this very environment."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "submarine.toml").write_text(f'backend = "local"\npython_env = "path:{sys.prefix}"\n')
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user without any settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))}
    return {
        **kept,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


def typed(project: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUBMARINE, *words],
        env=environ,
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def on_a_terminal(project: Path, environ: dict[str, str], answer: bytes, *words: str) -> str:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*SUBMARINE, *words], env=environ, cwd=project, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        os.write(master, answer)
        shown = b""
        with contextlib.suppress(OSError):  # the other end of the terminal is gone
            while piece := os.read(master, 65536):
                shown += piece
        process.wait(PATIENCE)
    os.close(master)
    return shown.decode()


def test_a_terminal_asks_once_and_a_script_is_refused(
    project: Path, environ: dict[str, str]
) -> None:
    refused = typed(project, environ, "list")
    assert refused.returncode == 2
    assert f"`submarine config trust {project}/submarine.toml`" in refused.stderr
    shown = on_a_terminal(project, environ, b"n\n", "list")
    assert f'python_env  "path:{sys.prefix}"' in shown
    assert "you have not confirmed this file" in shown
    assert "No jobs" in on_a_terminal(project, environ, b"y\n", "list")
    assert "Trust the file?" not in on_a_terminal(project, environ, b"", "list")
    assert typed(project, environ, "list").returncode == 0


def test_what_was_confirmed_holds_for_jobs_and_the_nodes_of_a_workflow(
    project: Path, environ: dict[str, str]
) -> None:
    """None of which can ask; a job's own commands look at no project."""
    (project / "asks.py").write_text(
        f"import os, subprocess\nos.environ['SUBMARINE_BACKEND'] = 'local'\n"
        f"subprocess.run({[*SUBMARINE, 'list']!r}, check=True)\n"
    )
    (project / "nightly.flow").write_text(FLOW)
    # No process of ours takes a module of the project for a library.
    (project / "click.py").write_text("raise SystemExit('the project ran')\n")
    for words in (["run", "asks.py", "--wait"], ["workflow", "run", "nightly.flow"]):
        assert "submarine config trust" in typed(project, environ, *words).stderr
    assert typed(project, environ, "config", "trust", "--yes").returncode == 0
    ran = typed(project, environ, "run", "asks.py", "--wait")
    assert ran.returncode == 0, ran.stderr
    ran = typed(project, environ, "workflow", "run", "nightly.flow")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def in_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that was started in the directory of a project, with a password at hand."""
    secret = {"SUBMARINE_AZKABAN_PASSWORD": "correct horse"}
    with running(tmp_path_factory.mktemp("server"), **secret) as made:
        yield made


def test_the_server_neither_follows_a_projects_address_nor_asks(
    in_project: Server, tmp_path: Path
) -> None:
    """With the password in its environment; nor does it log in once the address is confirmed."""
    file = in_project.cwd / "submarine.toml"
    with azkabans.running(tmp_path / "azkaban") as azkaban:
        file.write_text(f'[azkaban]\nurl = "{azkaban.url}"\nuser = "alice"\n')
        page = Page(in_project)
        try:
            page.subscribe(1, "workflow", run="azkaban:1", url=azkaban.url)
            answer = page.until(lambda m: m.get("id") == 1, PATIENCE)
            assert f"`submarine config trust {file}`" in json.dumps(answer)
            assert "you have not confirmed this file" in answer["error"]
            done = typed(in_project.cwd, in_project.environment, "config", "trust", "--yes")
            assert done.returncode == 0
            page.subscribe(2, "workflow", run="azkaban:1", url=azkaban.url)
            answer = page.until(lambda m: m.get("id") == 2, PATIENCE)
            assert "displaying an output does not log in" in answer["error"]
        finally:
            page.close()
        assert azkaban.requests == []
