"""A real job of several tasks as a person follows it: logs, the wait, the failing task's view."""

from __future__ import annotations

from pathlib import Path

from submarine_jobs import display
from submarine_jobs.commands import complete, execute
from submarine_jobs.frontends import JOB_FAILED, Frontend
from tests.frontends import RecordingFrontend

PROGRAM = """\
import os, sys, time
me = os.environ["SUBMARINE_ROLE"] + ":" + os.environ["SUBMARINE_INDEX"]
attempt = os.environ["SUBMARINE_ATTEMPT"]
for step in range(8):
    print(f"{me} step {step}", flush=True)
    if me == "worker:1" and step == 4 and "kill" in sys.argv and attempt == "1":
        os.kill(os.getpid(), 9)
    if me == "worker:1" and step == 4 and "fail" in sys.argv:
        raise ValueError("shapes do not fit")
    time.sleep(0.25)
"""


def submit(directory: Path, frontend: Frontend, *words: str) -> str:
    program = directory / "gang.py"
    program.write_text(PROGRAM)
    size = ["--worker", "2", "--ps", "1", "--memory", "200M", "--ps_resources", "memory=200M"]
    run = ["run", str(program), "--backend", "local", "--framework", "any", *size]
    outcome = execute([*run, "--max-restarts", "1", "--", *words], frontend)
    assert outcome.job is not None
    return outcome.job.id


def test_a_restarted_gang_is_followed_without_a_lost_line(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    frontend = RecordingFrontend("cli")
    job_id = submit(tmp_path, frontend, "kill")
    execute(["logs", "-f", job_id, "--all", "--stream", "stdout"], frontend)
    lines = frontend.written.decode().splitlines()
    session = frontend.session(frontend.config({"backend": "local"}))
    job = session.job(job_id)
    record = job.wait(90)
    assert record.state.value == "SUCCEEDED", record.detail
    for task in job.task_names:
        attempts = job.attempts(task)
        whole = b"".join(job.log(task=task, attempt=name).data for name in attempts)
        heard = [line for line in lines if line.startswith(f"{task} ")]
        assert [line.partition("| ")[2] for line in heard] == whole.decode().splitlines()
    assert len(job.attempts("worker:1")) == 2
    assert any("worker:1 was started again" in words for words in frontend.said)
    assert "worker:1" in complete(["logs", job_id, "--task", "w"], frontend)
    text = display.text(job.view())
    assert "restart: worker:1" in text
    assert "Log of worker:0" in text


def test_the_failing_task_is_shown_and_not_worker_0(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    frontend = Frontend()
    job_id = submit(tmp_path, frontend, "fail")
    outcome = execute(["wait", job_id], frontend)
    assert outcome.exit_code == JOB_FAILED
    assert "In worker:1, rank 1:" in outcome.text
    assert "ValueError: shapes do not fit" in outcome.text
    assert "Log of worker:1:" in outcome.text
    assert "worker:1 step 4" in outcome.text
    shown = execute(["show", job_id, "--json"], frontend).value
    assert [task["state"] for task in shown["tasks"] if task["task"] == "worker:1"] == ["FAILED"]


SILENT = """\
import os, pathlib, signal, time
if os.environ["SUBMARINE_INDEX"] == "1" and os.environ["SUBMARINE_ATTEMPT"] == "1":
    pid = os.getpid()
    while b"agent" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0"):
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    time.sleep(1.5)
    os.kill(pid, signal.SIGKILL)
    time.sleep(60)
print("done")
"""


def test_logs_names_an_attempt_whose_log_was_not_saved(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The agent is killed before it has shipped anything."""
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    frontend = RecordingFrontend("cli")
    program = tmp_path / "silent.py"
    program.write_text(SILENT)
    words = ["--backend", "local", "--framework", "any", "--worker", "2", "--memory", "200M"]
    outcome = execute(["run", str(program), *words], frontend)
    assert outcome.job is not None
    record = outcome.job.wait(90)
    assert record.state.value == "SUCCEEDED", record.detail
    sentence = "No log of attempt e1-a1 of worker:1 was saved"
    for options in (["--task", "worker:1"], ["--all"], ["-f", "--all"]):
        frontend.said, frontend.written = [], b""
        execute(["logs", outcome.job.id, *options], frontend)
        assert [words for words in frontend.said if "No log of" in words] == [
            f"{sentence}: it printed nothing, or its container was lost before anything had been "
            "shipped."
        ]
        assert b"done" in frontend.written
    frontend.said = []
    execute(["logs", outcome.job.id], frontend)
    assert not [words for words in frontend.said if "No log of" in words]
