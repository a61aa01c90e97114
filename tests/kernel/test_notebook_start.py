"""``submarine notebook``: a real JupyterLab as a job of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.client import Job
from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_runtime.protocol.states import State
from tests.kernel.notebook_rig import Visitor
from tests.notebook.conftest import clean_environment
from tests.reading import content, files_below
from tests.waiting import until

CLI = "from submarine_jobs.cli import main; main()"
START = ["notebook", "start", "--memory", "1G"]


class Person(Frontend):
    """At a command line."""

    kind = "cli"


@dataclass
class Desk:
    """One person's machine, and the notebook that runs there."""

    frontend: Person
    folder: Path
    value: dict[str, Any]
    text: str

    def job(self, text: str = "") -> Job:
        """The notebook's job."""
        session = self.frontend.session(load_config())
        return session.job(text or self.value["job_id"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this person's state lies; the environment says so as long as the tests run."""
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SUBMARINE_", "HADOOP_"))]:
            patch.delenv(name)
        for name, value in clean_environment(folder).items():
            patch.setenv(name, value)
        patch.chdir(folder)
        yield folder


def scratch_of(folder: Path, job_id: str) -> Path:
    """Where a job of this person works."""
    return folder / "state" / "jupyter-submarine" / "local" / job_id


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[Desk]:
    """A JupyterLab that runs."""
    frontend = Person()
    words = [*START, "--idle", "never", "--quicklink", "Docs=https://example.org/docs"]
    outcome = execute(words, frontend)
    desk = Desk(frontend, folder, outcome.value, outcome.text)
    try:
        yield desk
    finally:
        desk.job().cancel("the test is over")


def test_who_has_the_token_comes_in_and_nobody_else(desk: Desk) -> None:
    page, token = desk.value["page"], desk.value["token"]
    assert desk.value["url"] == f"{page}?token={token}"
    assert desk.value["url"] in desk.text
    stranger, guest = Visitor(desk.job(), page), Visitor(desk.job(), page, token)
    status, headers, _ = stranger.ask("GET", "/lab")
    assert (status, "/login" in headers["Location"]) == (302, True)
    assert stranger.ask("GET", "/api/contents")[0] == 403
    assert Visitor(desk.job(), page, token[:-1] + "x").ask("GET", "/api/contents")[0] == 403
    assert stranger.ask("GET", f"/lab?token={token}")[0] == 200
    assert guest.ask("GET", "/api/contents")[0] == 200
    # The job's own token is another one: it can end the job.
    assert token != desk.job().directory.secret().token


def test_a_kernel_runs_and_what_is_saved_is_in_the_job_directory(desk: Desk) -> None:
    guest = Visitor(desk.job(), desk.value["page"], desk.value["token"])
    assert asyncio.run(guest.run("print('the answer', 6 * 7)")) == "the answer 42\n"
    guest.save("mine.ipynb", "saved for good")
    snapshots = Path(desk.value["job_dir"].removeprefix("file://")) / "snapshots"

    def kept() -> bool:
        packs = [file for file in files_below(snapshots) if file.suffix == ".pack"]
        return any(b"saved for good" in content(pack) for pack in packs)

    until(kept, "the notebook is in the job directory")


def test_the_token_is_nowhere(desk: Desk) -> None:
    token = desk.value["token"]
    for path in files_below(Path(desk.value["job_dir"].removeprefix("file://"))):
        assert token.encode() not in content(path), path
    scratch = scratch_of(desk.folder, desk.value["job_id"])
    for path in files_below(scratch):
        if token.encode() in content(path):
            closed = [p for p in (path, *path.parents) if p.stat().st_mode & 0o077 == 0]
            assert any(scratch in p.parents for p in closed), path
    ours: list[list[str]] = []
    for process in psutil.process_iter():
        try:
            if str(scratch) in process.environ().get("SUBMARINE_TUNNELS", ""):
                ours.append(process.cmdline())
                assert token not in " ".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue
    assert any("jupyterlab" in command for command in ours)


def test_list_show_and_url(desk: Desk) -> None:
    listed = execute(["notebook", "list"], desk.frontend)
    assert [record["job_id"] for record in listed.value] == [desk.value["job_id"]]
    shown = execute(["notebook", "show"], desk.frontend)
    links = shown.value["links"]
    assert links["JupyterLab"] == desk.value["page"]
    assert links["Docs"] == "https://example.org/docs"
    again = execute(["notebook", "url", desk.value["job_id"]], desk.frontend)
    assert again.value == desk.value
    # What a notebook's output keeps, others may read.
    notebook = Frontend()
    notebook.kind = "notebook"
    said = execute(["notebook", "url"], notebook)
    assert desk.value["page"] in said.text
    assert desk.value["token"] not in said.text + str(said.value)


def test_forward_serves_it_here_without_a_certificate(desk: Desk) -> None:
    command = [sys.executable, "-c", CLI, "notebook", "url", "--forward"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as forward:
        assert forward.stdout is not None
        line = forward.stdout.readline().decode()
        assert line.startswith("JupyterLab is at http://127.0.0.1:"), line
        with urllib.request.urlopen(line.split()[-1], timeout=60) as page:
            assert page.status == 200
        forward.send_signal(signal.SIGINT)
        rest = forward.communicate(timeout=60)[0].decode()
    assert "continues" in rest
    assert not desk.job().record().state.ended


def test_stop_keeps_the_notebooks_and_the_next_begins_with_them(desk: Desk) -> None:
    guest = Visitor(desk.job(), desk.value["page"], desk.value["token"])
    guest.save("mine.ipynb", "saved for good")
    guest.save("last.ipynb", "the last one")
    execute(["notebook", "stop", desk.value["job_id"]], desk.frontend)
    record = desk.job().wait(120)
    assert record.state is State.CANCELLED
    kept = {output.path for output in record.outputs}
    assert {"checkpoints/mine.ipynb", "checkpoints/last.ipynb"} <= kept
    with pytest.raises(SubmarineError, match="has ended"):
        execute(["notebook", "url", desk.value["job_id"]], desk.frontend)
    assert execute(["notebook", "list"], desk.frontend).value == []
    words = [*START, "--no-wait", "--idle", "3s", "--from", desk.value["job_id"]]
    following = desk.job(execute(words, desk.frontend).value["job_id"])
    # Nobody uses it, so it ends by itself.
    record = following.wait(180)
    assert record.state is State.SUCCEEDED, record.detail
    assert b"JupyterLab was not used for 3 s" in following.log("stdout").data
    place = Path(following.job_dir.removeprefix("file://")) / "checkpoints"
    assert b"saved for good" in (place / "mine.ipynb").read_bytes()
    assert b"the last one" in (place / "last.ipynb").read_bytes()


@pytest.mark.full
def test_nothing_is_lost_with_the_container(folder: Path) -> None:
    frontend = Person()
    first = Desk(frontend, folder, execute([*START, "--idle", "never"], frontend).value, "")
    guest = Visitor(first.job(), first.value["page"], first.value["token"])
    guest.save("mine.ipynb", "saved for good")
    snapshots = Path(first.value["job_dir"].removeprefix("file://")) / "snapshots"
    until(
        lambda: any(file.suffix == ".json" for file in files_below(snapshots)),
        "there is a snapshot",
    )
    scratch = str(scratch_of(folder, first.value["job_id"]))
    agents = [
        process
        for process in psutil.process_iter(["cmdline"])
        if scratch in (process.info["cmdline"] or []) and "agent" in process.info["cmdline"]
    ]
    assert agents
    for agent in agents:
        agent.kill()
    until(lambda: first.job().record().state.ended, "the loss is noticed")
    # Nothing of it outlives its agent.
    until(lambda: not of_scratch(scratch), "all of its processes have ended")
    words = [*START, "--no-wait", "--idle", "3s", "--from", first.value["job_id"]]
    following = first.job(execute(words, frontend).value["job_id"])
    assert following.wait(180).state is State.SUCCEEDED
    kept = Path(following.job_dir.removeprefix("file://")) / "checkpoints" / "mine.ipynb"
    assert b"saved for good" in kept.read_bytes()


def of_scratch(scratch: str) -> list[list[str]]:
    """Command lines of the processes of a job's program."""
    found = []
    for process in psutil.process_iter():
        try:
            if scratch in process.environ().get("SUBMARINE_TUNNELS", ""):
                found.append(process.cmdline())
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "100M"], "100 MiB are too few for JupyterLab"),
        (["--app", "zeppelin"], "The directory of Zeppelin is not known"),
        (["--zeppelin-home", "/z"], "needs --app zeppelin"),
        (["--app", "labb"], "did you mean lab"),
        (["--from", "nothing-here"], "nothing-here"),
        (["--python-env", "path:{here}"], "There is no JupyterLab in"),
    ],
)
def test_what_cannot_work_is_refused_before(folder: Path, words: list[str], message: str) -> None:
    jobs = len(execute(["list"], Person()).value)
    (folder / "env" / "bin").mkdir(parents=True, exist_ok=True)
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        python.symlink_to(sys.executable)
    typed = [word.replace("{here}", str(folder / "env")) for word in words]
    with pytest.raises(UsageError, match=message):
        execute(["notebook", "start", *typed], Person())
    assert len(execute(["list"], Person()).value) == jobs


def test_a_job_that_is_no_notebook_is_none(folder: Path) -> None:
    (folder / "plain.py").write_text("print(1)\n")
    execute(["run", "plain.py", "--wait"], Person())
    for verb in ("url", "stop", "show"):
        with pytest.raises(UsageError, match="was not started by"):
            execute(["notebook", verb, "plain"], Person())


def test_no_cluster_is_said_with_the_ways_on(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("SUBMARINE_BACKEND")
    with pytest.raises(SubmarineError, match=r"No cluster is configured.*minicluster"):
        execute(["notebook", "start"], Person())


def test_what_is_missing_in_the_container_is_named(folder: Path) -> None:
    """The nodes' environment is not seen from here, so the job says what is missing."""
    bare = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with pytest.raises(UsageError, match="There is no JupyterLab in"):
        execute([*START, "--python-env", f"path:{bare}"], Person())
    zeppelin = [*START, "--app", "zeppelin", "--zeppelin-home", str(bare)]
    with pytest.raises(SubmarineError, match="ended before it was ready"):
        execute(zeppelin, Person())
    job = Person().session(load_config()).job("last")
    assert b"bin/zeppelin.sh is missing" in job.log("stderr").data
