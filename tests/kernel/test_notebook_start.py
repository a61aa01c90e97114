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
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import EndReason, State
from tests.frontends import RecordingFrontend
from tests.kernel.notebook_client import HttpClient
from tests.notebook.conftest import clean_environment
from tests.reading import content, files_below
from tests.subprocesses.gpus.gpu_node import device_line, node_with_gpus
from tests.waiting import until

CLI = "from submarine_jobs.cli import main; main()"
START = ["notebook", "start", "--memory", "1G"]


@dataclass
class NotebookServer:
    """One user's directory, and the notebook server that runs there."""

    frontend: RecordingFrontend
    folder: Path
    value: dict[str, Any]
    text: str

    def job(self, text: str = "") -> Job:
        """Return the job of the notebook server."""
        session = self.frontend.session(load_config())
        return session.job(text or self.value["job_id"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's directory; the environment contains its paths during the tests."""
    folder = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SUBMARINE_", "HADOOP_"))]:
            patch.delenv(name)
        for name, value in clean_environment(folder).items():
            patch.setenv(name, value)
        patch.chdir(folder)
        yield folder


def scratch_of(folder: Path, job_id: str) -> Path:
    """Return the scratch directory of a job."""
    return folder / "state" / "jupyter-submarine" / "local" / job_id


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[NotebookServer]:
    """A running JupyterLab."""
    frontend = RecordingFrontend("cli")
    words = [*START, "--idle", "never", "--quicklink", "Docs=https://example.org/docs"]
    outcome = execute(words, frontend)
    server = NotebookServer(frontend, folder, outcome.value, outcome.text)
    try:
        yield server
    finally:
        server.job().cancel("the test is over")


def test_access_needs_the_token(server: NotebookServer) -> None:
    page, token = server.value["page"], server.value["token"]
    assert server.value["url"] == f"{page}?token={token}"
    assert server.value["url"] in server.text
    anonymous, client = HttpClient(server.job(), page), HttpClient(server.job(), page, token)
    status, headers, _ = anonymous.ask("GET", "/lab")
    assert (status, "/login" in headers["Location"]) == (302, True)
    assert anonymous.ask("GET", "/api/contents")[0] == 403
    assert HttpClient(server.job(), page, token[:-1] + "x").ask("GET", "/api/contents")[0] == 403
    assert anonymous.ask("GET", f"/lab?token={token}")[0] == 200
    assert client.ask("GET", "/api/contents")[0] == 200
    # The job's own token is different: it allows to end the job.
    assert token != server.job().directory.secret().token


def test_a_kernel_runs_and_saved_notebooks_are_in_the_job_directory(server: NotebookServer) -> None:
    client = HttpClient(server.job(), server.value["page"], server.value["token"])
    assert asyncio.run(client.run("print('the answer', 6 * 7)")) == "the answer 42\n"
    client.save("mine.ipynb", "saved for good")
    snapshots = Path(server.value["job_dir"].removeprefix("file://")) / "snapshots"

    def kept() -> bool:
        packs = [file for file in files_below(snapshots) if file.suffix == ".pack"]
        return any(b"saved for good" in content(pack) for pack in packs)

    until(kept, "the notebook is in the job directory")


def test_the_token_is_not_stored(server: NotebookServer) -> None:
    token = server.value["token"]
    for path in files_below(Path(server.value["job_dir"].removeprefix("file://"))):
        assert token.encode() not in content(path), path
    scratch = scratch_of(server.folder, server.value["job_id"])
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


def test_list_show_and_url(server: NotebookServer) -> None:
    listed = execute(["notebook", "list"], server.frontend)
    assert [record["job_id"] for record in listed.value] == [server.value["job_id"]]
    shown = execute(["notebook", "show"], server.frontend)
    links = shown.value["links"]
    assert links["JupyterLab"] == server.value["page"]
    assert links["Docs"] == "https://example.org/docs"
    again = execute(["notebook", "url", server.value["job_id"]], server.frontend)
    assert again.value == server.value
    # The output of a notebook is saved and may be read by others.
    notebook = Frontend()
    notebook.kind = "notebook"
    said = execute(["notebook", "url"], notebook)
    assert server.value["page"] in said.text
    assert server.value["token"] not in said.text + str(said.value)


def test_forward_serves_it_without_a_certificate(server: NotebookServer) -> None:
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
    assert not server.job().record().state.ended


def test_stop_keeps_the_notebooks_for_the_next_server(server: NotebookServer) -> None:
    client = HttpClient(server.job(), server.value["page"], server.value["token"])
    client.save("mine.ipynb", "saved for good")
    client.save("last.ipynb", "the last one")
    execute(["notebook", "stop", server.value["job_id"]], server.frontend)
    record = server.job().wait(120)
    assert record.state is State.CANCELLED
    kept = {output.path for output in record.outputs}
    assert {"checkpoints/mine.ipynb", "checkpoints/last.ipynb"} <= kept
    with pytest.raises(SubmarineError, match="has ended"):
        execute(["notebook", "url", server.value["job_id"]], server.frontend)
    assert execute(["notebook", "list"], server.frontend).value == []
    words = [*START, "--no-wait", "--idle", "3s", "--from", server.value["job_id"]]
    following = server.job(execute(words, server.frontend).value["job_id"])
    # It is not used, so it ends.
    record = following.wait(180)
    assert record.state is State.SUCCEEDED, record.detail
    assert b"JupyterLab was not used for 3 s" in following.log("stdout").data
    place = Path(following.job_dir.removeprefix("file://")) / "checkpoints"
    assert b"saved for good" in (place / "mine.ipynb").read_bytes()
    assert b"the last one" in (place / "last.ipynb").read_bytes()


def test_a_server_whose_gpus_are_idle_ends_and_keeps_its_notebooks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = node_with_gpus(tmp_path, monkeypatch, device_line("GPU-notebook", 90))
    frontend = RecordingFrontend("cli")
    words = [*START, "--gpu", "1", "--idle", "never", "--idle-gpu", "10s:end"]
    outcome = execute(words, frontend)
    server = NotebookServer(frontend, folder, outcome.value, outcome.text)
    client = HttpClient(server.job(), server.value["page"], server.value["token"])
    client.save("mine.ipynb", "saved for good")
    replace_file(devices, device_line("GPU-notebook", 0).encode())
    record = server.job().wait(120)
    assert (record.reason, record.state) == (EndReason.IDLE_GPU, State.CANCELLED), record.detail
    assert "The GPUs of notebook:0 were below 5 % for 1" in str(record.detail)
    assert "checkpoints/mine.ipynb" in {output.path for output in record.outputs}
    assert b"JupyterLab was stopped." in server.job().log("stdout").data


@pytest.mark.full
def test_saved_notebooks_survive_the_container(folder: Path) -> None:
    frontend = RecordingFrontend("cli")
    first = NotebookServer(
        frontend, folder, execute([*START, "--idle", "never"], frontend).value, ""
    )
    client = HttpClient(first.job(), first.value["page"], first.value["token"])
    client.save("mine.ipynb", "saved for good")
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
    # Its processes end with its agent.
    until(lambda: not of_scratch(scratch), "all of its processes have ended")
    words = [*START, "--no-wait", "--idle", "3s", "--from", first.value["job_id"]]
    following = first.job(execute(words, frontend).value["job_id"])
    assert following.wait(180).state is State.SUCCEEDED
    kept = Path(following.job_dir.removeprefix("file://")) / "checkpoints" / "mine.ipynb"
    assert b"saved for good" in kept.read_bytes()


def of_scratch(scratch: str) -> list[list[str]]:
    """Return the command lines of the processes of a job's program."""
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
        (["--idle-gpu", "1h:end"], "--idle-gpu needs a job with GPUs"),
        (["--app", "labb"], "did you mean lab"),
        (["--from", "nothing-here"], "nothing-here"),
        (["--python-env", "path:{here}"], "There is no JupyterLab in"),
    ],
)
def test_invalid_requests_are_rejected_before_the_submission(
    folder: Path, words: list[str], message: str
) -> None:
    jobs = len(execute(["list"], RecordingFrontend("cli")).value)
    (folder / "env" / "bin").mkdir(parents=True, exist_ok=True)
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        python.symlink_to(sys.executable)
    typed = [word.replace("{here}", str(folder / "env")) for word in words]
    with pytest.raises(UsageError, match=message):
        execute(["notebook", "start", *typed], RecordingFrontend("cli"))
    assert len(execute(["list"], RecordingFrontend("cli")).value) == jobs


def test_other_jobs_are_rejected(folder: Path) -> None:
    (folder / "plain.py").write_text("print(1)\n")
    execute(["run", "plain.py", "--wait"], RecordingFrontend("cli"))
    for verb in ("url", "stop", "show"):
        with pytest.raises(UsageError, match="was not started by"):
            execute(["notebook", verb, "plain"], RecordingFrontend("cli"))


def test_a_missing_cluster_is_reported_with_alternatives(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.delenv("SUBMARINE_BACKEND")
    with pytest.raises(SubmarineError, match=r"No cluster is configured.*minicluster"):
        execute(["notebook", "start"], RecordingFrontend("cli"))


def test_a_missing_application_in_the_container_is_named(folder: Path) -> None:
    """The environment of a node is not checked before the submission: the job reports it."""
    bare = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with pytest.raises(UsageError, match="There is no JupyterLab in"):
        execute([*START, "--python-env", f"path:{bare}"], RecordingFrontend("cli"))
    zeppelin = [*START, "--app", "zeppelin", "--zeppelin-home", str(bare)]
    with pytest.raises(SubmarineError, match="ended before it was ready"):
        execute(zeppelin, RecordingFrontend("cli"))
    job = RecordingFrontend("cli").session(load_config()).job("last")
    assert b"bin/zeppelin.sh is missing" in job.log("stderr").data
