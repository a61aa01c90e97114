"""Values of ``--secret`` on the local backend: they reach the program, and no other file has them.

The contract test suite searches the job directory of each backend.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from submarine_jobs import display
from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.options import command_of_spec
from submarine_runtime.protocol import EndReason, State, layout
from tests.frontends import PictureFrontend, RecordingFrontend
from tests.submission import make_job, submitting
from tests.waiting import PATIENCE, until

PROGRAM = """\
import hashlib, os, pathlib, time
for name in ("APP_TOKEN", "APP_KEY"):
    print(name, hashlib.sha256(os.environ[name].encode()).hexdigest(), flush=True)
answer = 42
while not pathlib.Path({go!r}).exists():
    time.sleep(0.05)
"""


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two values: of a variable and of the file ``key``, in the current directory."""
    made = {name: f"{name}-{secrets.token_hex(16)}" for name in ("APP_TOKEN", "APP_KEY")}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("APP_TOKEN", made["APP_TOKEN"])
    (tmp_path / "key").write_text(made["APP_KEY"] + "\n")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "train.py").write_text(PROGRAM.format(go=str(tmp_path / "go")))
    return made


@pytest.fixture
def session(tmp_path: Path, values: dict[str, str]) -> Iterator[Session]:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    with submitting(session):
        yield session
    (tmp_path / "go").touch()
    for row in session.store.unfinished():
        session.job(row.job_id).cancel("the test is over")


def holders(top: Path, values: dict[str, str]) -> list[Path]:
    """Return the files below ``top``, also in archives, that contain a value."""
    found = []
    for path in top.rglob("*"):
        if not path.is_file() or path == top / "key" or path.name.startswith("runtime"):
            continue
        texts = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                texts += [archive.read(name) for name in archive.namelist()]
        if any(value.encode() in text for value in values.values() for text in texts):
            found.append(path)
    return found


def has_line(job: Job, task: str) -> bool:
    return bool(job.log("stdout", task=task).data)


def digests(values: dict[str, str]) -> str:
    lines = (f"{k} {hashlib.sha256(v.encode()).hexdigest()}\n" for k, v in values.items())
    return "".join(lines)


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def shown(session: Session, *words: str) -> str:
    """What a command shows in a terminal and in a notebook."""
    texts = []
    for frontend in (RecordingFrontend(session=session), PictureFrontend()):
        frontend._session = session
        outcome = execute(list(words), frontend)
        texts += [outcome.text or "", json.dumps(outcome.value, default=str), *frontend.said]
        texts += [json.dumps(bundle) for bundle in getattr(frontend, "pictures", [])]
        texts.append(frontend.written.decode())
    return "\n".join(texts)


@pytest.mark.parametrize("instances", [1, 2])
def test_the_program_alone_has_the_values(
    instances: int, session: Session, values: dict[str, str], tmp_path: Path
) -> None:
    words = ["run", "train.py", "--memory", "256M", "--framework", "any", "--return", "answer"]
    words += ["--worker", str(instances), "--secret", "APP_TOKEN", "--secret", "APP_KEY=key"]
    dry = shown(session, *words, "--dry-run")
    assert "APP_TOKEN from the environment or the keyring" in dry
    assert "APP_KEY from key" in dry
    job = execute(words, RecordingFrontend(session=session)).job
    assert isinstance(job, Job)
    tasks = [f"worker:{index}" for index in range(instances)]
    for task in tasks:
        until(partial(has_line, job, task), "a line")
        assert job.log("stdout", task=task).data.decode() == digests(values)

    # While it runs: one file in the job directory, and the copies for the agents.
    inside = holders(tmp_path, values)
    assert {path.name for path in inside} == {layout.SECRET_ENV}
    assert {path.stat().st_mode & 0o777 for path in inside} == {0o600}
    assert Path(job.directory.file(layout.SECRET_ENV)) in inside
    scratch = tmp_path / "state" / "local" / job.id
    ours = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        assert not any(value in line for value in values.values())
        if str(scratch) in line and "launch.py" not in line:
            ours.append(process.pid)
    # The process that submits has APP_TOKEN itself, and a local agent inherits that.
    assert ours
    assert not any(values["APP_KEY"].encode() in environment(pid) for pid in ours)

    (tmp_path / "go").touch()
    record = job.wait(PATIENCE)
    assert record.state is State.SUCCEEDED, record.detail
    assert job.result["answer"] == 42
    assert not record.warnings

    def removed() -> bool:
        job.session.jobs()
        return not holders(tmp_path, values)

    until(removed, lambda: f"left: {holders(tmp_path, values)}")
    assert not Path(job.directory.file(layout.SECRET_ENV)).exists()
    view = job.view()
    for text in (
        shown(session, "show", job.id),
        shown(session, "show", job.id, "--json"),
        shown(session, "list", "--json"),
        display.html(view),
        json.dumps(display.mimebundle(view)),
        repr(job.directory.spec()),
    ):
        assert not any(value in text for value in values.values())
    command = command_of_spec(job.directory.spec())
    assert "--secret=APP_TOKEN " in f"{command} "
    assert "--secret=APP_KEY=key" in command


def test_rerun_reads_the_values_again(
    session: Session, values: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").touch()
    words = ["run", "train.py", "--memory", "256M", "--wait"]
    frontend = RecordingFrontend(session=session)
    execute([*words, "--secret", "APP_TOKEN", "--secret", "APP_KEY=key"], frontend)
    first = session.job("last")
    assert first.record().state is State.SUCCEEDED

    new = {**values, "APP_KEY": "another"}
    (tmp_path / "key").write_text("another")
    (tmp_path / "key").chmod(0o644)
    frontend = RecordingFrontend(session=session)
    execute(["rerun", first.id, "--wait"], frontend)
    second = session.job("last")
    assert second.id != first.id
    assert second.log("stdout").data.decode() == digests(new)
    said = "\n".join(frontend.said)
    assert "--secret is read again: APP_TOKEN from the environment or the keyring." in said
    assert "--secret is read again: APP_KEY from key." in said
    assert "other users can read key (mode 0644)" in said

    jobs = len(session.jobs())
    (tmp_path / "key").unlink()
    with pytest.raises(UsageError, match=re.escape(f"APP_KEY: there is no file {tmp_path}/key.")):
        execute(["rerun", first.id], RecordingFrontend(session=session))
    (tmp_path / "key").write_text("another")
    monkeypatch.delenv("APP_TOKEN")
    with pytest.raises(UsageError, match="environment variable APP_TOKEN is not set"):
        first.rerun()
    assert len(session.jobs()) == jobs
    monkeypatch.setenv("APP_TOKEN", "x")
    monkeypatch.setattr("submarine_jobs.client.repetition.foreign_owner", lambda _: "eve")
    with pytest.raises(RefusedError, match="a job of eve with --secret APP_KEY, APP_TOKEN"):
        first.rerun(yes=True)
    assert len(session.jobs()) == jobs


def test_tensorboard_and_its_agent_get_no_values(
    session: Session, values: dict[str, str], tmp_path: Path
) -> None:
    frontend = RecordingFrontend(session=session)
    words = ["run", "train.py", "--memory", "256M", "--framework", "any", "--tensorboard"]
    job = execute(
        [*words, "--force", "--secret", "APP_KEY=key", "--secret", "APP_TOKEN"], frontend
    ).job
    assert isinstance(job, Job)
    until(lambda: job.log("stdout", task="worker:0").data, "a line")
    scratch = tmp_path / "state" / "local" / job.id
    until(lambda: list((scratch / "tasks").glob("tensorboard*")), "the task of TensorBoard")
    inside = [str(path.relative_to(scratch)) for path in holders(scratch, values)]
    assert inside
    assert not [name for name in inside if "tensorboard" in name]
    job.cancel("the test is over")
    assert job.wait(PATIENCE).state is State.CANCELLED
    assert not Path(job.directory.file(layout.SECRET_ENV)).exists()


@pytest.mark.parametrize("ending", ["error", "killed", "refused", "orphan"])
def test_no_ending_keeps_the_values(
    ending: str, session: Session, values: dict[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if ending == "refused":

        def refuse(*_: object) -> None:
            raise RefusedError("The cluster refuses it.")

        monkeypatch.setattr("submarine_jobs.backends.local.LocalBackend.submit", refuse)
        with pytest.raises(RefusedError):
            session.submit(*make_job("pass", secrets={"APP_TOKEN": ""}))
        assert not holders(tmp_path, values)
        return
    source = {"error": "raise SystemExit(3)"}.get(
        ending, "import time\nprint('up', flush=True)\ntime.sleep(600)"
    )
    job = session.submit(*make_job(source, secrets={"APP_TOKEN": ""}))
    assert job.handle is not None
    agent = psutil.Process(int(job.handle["pid"]))
    if ending != "error":
        until(lambda: job.log("stdout").data, "a line")
        agent.terminate() if ending == "killed" else agent.kill()
    record = job.wait(PATIENCE)
    expected = {
        "error": EndReason.PROGRAM_ERROR,
        "killed": EndReason.KILLED_ON_CLUSTER,
        "orphan": EndReason.AGENT_LOST,
    }
    assert record.reason is expected[ending]

    def removed() -> bool:
        session.jobs()
        return not holders(tmp_path, values)

    until(removed, lambda: f"left: {holders(tmp_path, values)}")


def test_a_project_file_names_no_secret(values: dict[str, str], tmp_path: Path) -> None:
    """``--secret`` is an option only: no configuration file has it, trusted or not."""
    for text in ('secret = "APP_TOKEN"\n', '[settings]\nsecret = "APP_TOKEN"\n'):
        (tmp_path / "submarine.toml").write_text(text)
        with pytest.raises(Exception, match="secret") as caught:
            execute(["run", "train.py", "--backend", "local", "--dry-run"], RecordingFrontend())
        assert type(caught.value).__name__.endswith("ConfigError")
        assert values["APP_TOKEN"] not in str(caught.value)


def test_the_agent_reports_a_backend_without_the_file(
    session: Session, values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_jobs.backends.job_files.has_secrets", lambda *_: False)
    job = session.submit(
        *make_job("print('ran')", secrets={"APP_TOKEN": ""}, python=sys.executable)
    )
    record = job.wait(PATIENCE)
    assert record.reason is EndReason.LAUNCH_FAILED
    assert "no value of --secret APP_TOKEN: secret-env.json was not localized" in record.detail
    assert job.log("stdout").data == b""
    assert os.environ["APP_TOKEN"] == values["APP_TOKEN"]
