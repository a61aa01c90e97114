"""Our notebooks under jupyter-scheduler: a real server, asked by REST as JupyterLab does it."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.client import Job
from submarine_jobs.display import MIME_TYPE
from submarine_runtime.protocol import State
from tests.local.server.jupyter_server import BASE
from tests.local.workflows.scheduler_server import OURS, Scheduler, outputs_of
from tests.waiting import until

TRAIN = "%%submarine --only\nprint('trained')\naccuracy = 0.5"
RUN = "%submarine run digits --memory 256M"
FAILS = "%%submarine --only\nhalf = 1 / 2\nhalf / 0"
LASTS = "%%submarine --only\nimport time\nprint('begun', flush=True)\ntime.sleep(3600)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    made = Scheduler(tmp_path_factory.mktemp("scheduler"), OURS)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def jobs(server: Scheduler) -> dict[str, str]:
    """Scheduled jobs, which run beside each other; name -> id."""
    trained = f"{RUN} --return accuracy\nprint(repr(who), steps)"
    server.write("good.ipynb", TRAIN, trained, parameters="who = 'nobody'\nsteps = 1")
    server.write("long.ipynb", LASTS, "print('before')", RUN)
    return {
        "long": server.create("long.ipynb", "long"),
        "good": server.create("good.ipynb", "good", parameters={"who": "ada", "steps": "7"}),
    }


def submarine_jobs_of(server: Scheduler, run: str, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The Submarine jobs that a scheduled job has started."""
    session = server.session(monkeypatch)
    return [session.job(one.job_id) for one in session.jobs() if one.workflow_run == run]


def wait_until_it_trains(server: Scheduler, run: str, monkeypatch: pytest.MonkeyPatch) -> Job:
    """The one Submarine job of a scheduled job, once it has printed something."""

    def begun() -> list[Job]:
        assert server.job(run)["status"] != "FAILED", server.job(run)
        time.sleep(0.3)
        found = submarine_jobs_of(server, run, monkeypatch)
        return [job for job in found if b"begun" in job.log("stdout").data]

    (job,) = until(begun, seconds=180.0)
    found: Job = job
    return found


def stop(server: Scheduler, run: str) -> None:
    answer = server.call("PATCH", f"{BASE}scheduler/jobs/{run}", {"status": "STOPPED"})
    assert answer.status == 204


def processes_of(server: Scheduler, run: str = "") -> list[psutil.Process]:
    """Kernels and runners of scheduled notebooks, or of one."""
    staging = str(server.scratch / "data/scheduler_staging_area" / run)
    every = psutil.process_iter(["cwd"])
    return [process for process in every if (process.info["cwd"] or "").startswith(staging)]


def test_a_scheduled_notebook_gets_its_parameters_and_leaves_its_card(
    server: Scheduler, jobs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.ended(jobs["good"])["status"] == "COMPLETED", server.log.read_text()[-3000:]
    files = server.outputs(jobs["good"])
    assert set(files) == {"ipynb", "html", "input"}
    printed = "".join("".join(o["text"]) for o in outputs_of(files["ipynb"], "stream"))
    assert "'ada' 7\n" in printed
    (card,) = [o["data"] for o in outputs_of(files["ipynb"], "display_data")]
    assert card[MIME_TYPE]["state"] == "SUCCEEDED"
    assert "trained" in "".join(card["text/html"])
    assert "SUCCEEDED" in "".join(card["text/plain"])
    html = files["html"].read_text()
    assert "trained" in html
    assert "Returned accuracy" in html
    (job,) = submarine_jobs_of(server, jobs["good"], monkeypatch)
    spec = job.directory.spec()
    assert (spec.workflow, spec.workflow_node, spec.lease) == ("good", "good", None)


def test_a_stop_ends_the_jobs_and_leaves_the_output(
    server: Scheduler, jobs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wait_until_it_trains(server, jobs["long"], monkeypatch)
    stop(server, jobs["long"])
    assert server.job(jobs["long"])["status"] == "STOPPED"
    assert job.wait(120).state is State.CANCELLED
    # jupyter-scheduler has killed its own process; ours still writes what there is, to where
    # Lab would put it, which offers no outputs of stopped runs.
    kept = server.root / "jobs" / f"long-{jobs['long']}"
    until(lambda: not processes_of(server, jobs["long"]), seconds=120.0)
    (output,), (html,) = kept.glob("*.ipynb"), kept.glob("*.html")
    assert "before" in json.dumps(outputs_of(output, "stream"))
    assert "CANCELLED" in html.read_text()
    (card,) = [o["data"] for o in outputs_of(output, "display_data")]
    assert card[MIME_TYPE]["state"] == "CANCELLED"
    said = outputs_of(output, "error")
    assert [error["ename"] for error in said] == ["RunEnded"]
    server.ended(jobs["good"])
    until(lambda: not processes_of(server))


@pytest.mark.full
def test_a_failed_job_fails_the_scheduled_one_with_the_mapped_traceback(server: Scheduler) -> None:
    server.write("bad.ipynb", FAILS, RUN, "print('done')")
    bad = server.create("bad.ipynb", "bad", formats=["html"])
    job = server.ended(bad)
    assert job["status"] == "FAILED"
    assert job["status_message"].startswith("Cell [3]: JobFailedError: Job digits-")
    assert job["status_message"].endswith("FAILED: ZeroDivisionError: float division by zero")
    files = server.outputs(bad)
    assert set(files) == {"html", "input"}
    html = files["html"].read_text()
    assert "ZeroDivisionError" in html
    assert "line 3" in html


@pytest.mark.full
def test_a_definition_runs_every_minute(server: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    server.write("minute.ipynb", TRAIN, RUN)
    definition = define(server, "minute.ipynb", schedule="* * * * *")

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = server.ask("GET", f"jobs?job_definition_id={definition}")[
            "jobs"
        ]
        return found

    first = until(runs, seconds=180.0)[0]
    server.ask("PATCH", f"job_definitions/{definition}", {"active": False})
    ended = server.ended(first["job_id"])
    assert ended["status"] == "COMPLETED", ended
    assert not ended.get("status_message")
    (job,) = submarine_jobs_of(server, ended["job_id"], monkeypatch)
    assert job.directory.spec().workflow == "every minute"


@pytest.mark.full
def test_runs_that_never_started_are_reported(server: Scheduler) -> None:
    """The server was away for an hour, says its database: the next run tells what was missed."""
    server.write("tick.ipynb", "print('tick')")
    definition = define(server, "tick.ipynb", schedule="*/20 * * * *", active=False)
    first = server.ask("POST", f"job_definitions/{definition}/jobs", {})["job_id"]
    server.ended(first)
    database = sqlite3.connect(server.scratch / "data/scheduler.sqlite", timeout=60)
    with database:
        for table, key in (("jobs", first), ("job_definitions", definition)):
            name = table.removesuffix("s")
            database.execute(
                f"UPDATE {table} SET create_time = create_time - 3600000, "
                f"update_time = update_time - 3600000 WHERE {name}_id = ?",
                (key,),
            )
    database.close()
    second = server.ended(server.ask("POST", f"job_definitions/{definition}/jobs", {})["job_id"])
    assert second["status"] == "COMPLETED"
    assert re.match(r"every minute: [23] scheduled runs were missed: 20", second["status_message"])


def define(server: Scheduler, notebook: str, **more: Any) -> str:
    order = {
        "input_uri": notebook,
        "name": "every minute",
        "runtime_environment_name": "python",
        "output_formats": ["ipynb"],
        "timezone": "UTC",
        **more,
    }
    return str(server.ask("POST", "job_definitions", order)["job_definition_id"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("victim", "said"),
    [("ipykernel_launcher", "died"), ("submarine_workflows.scheduler.process", "signal 9")],
)
def test_a_process_that_is_killed_fails_the_run_and_ends_its_jobs(
    server: Scheduler, monkeypatch: pytest.MonkeyPatch, victim: str, said: str
) -> None:
    server.write("long.ipynb", LASTS, RUN)
    run = server.create("long.ipynb", "killed")
    job = wait_until_it_trains(server, run, monkeypatch)
    (process,) = [p for p in processes_of(server) if victim in p.cmdline()]
    process.kill()
    ended = server.ended(run)
    assert ended["status"] == "FAILED"
    assert said in ended["status_message"]
    assert job.wait(120).state is State.CANCELLED
    until(lambda: not processes_of(server))


@pytest.mark.full
def test_a_run_that_is_deleted_while_it_trains_leaves_nothing(
    server: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.write("long.ipynb", LASTS, RUN)
    run = server.create("long.ipynb", "deleted")
    job = wait_until_it_trains(server, run, monkeypatch)
    assert server.call("DELETE", f"{BASE}scheduler/jobs/{run}").status == 204
    assert job.wait(120).state is State.CANCELLED
    until(lambda: not processes_of(server))
    assert not (server.scratch / "data/scheduler_staging_area" / run).exists()


@pytest.mark.full
def test_without_our_manager_a_stop_ends_the_jobs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jupyter-scheduler's own one runs our notebooks as nbclient does, one job after the other."""
    server = Scheduler(tmp_path)
    server.start()
    try:
        server.write("long.ipynb", LASTS, RUN)
        server.write("bad.ipynb", FAILS, RUN)
        runs = [server.create("long.ipynb"), server.create("bad.ipynb")]
        session = server.session(monkeypatch)

        def lasting() -> list[Job]:
            ids = [r.job_id for r in session.jobs() if r.state is State.RUNNING]
            found = [session.job(job_id) for job_id in ids]
            time.sleep(0.3)
            return [job for job in found if b"begun" in job.log("stdout").data]

        (job,) = until(lasting, seconds=180.0)
        stop(server, runs[0])
        assert job.wait(120).state is State.CANCELLED
        failed = server.ended(runs[1])
        assert failed["status"] == "FAILED"
        assert "ZeroDivisionError" in failed["status_message"]
        until(lambda: not processes_of(server))
    finally:
        server.stop()


@pytest.mark.full
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name
)
def test_a_server_that_is_ended_with_all_its_processes_leaves_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    server = Scheduler(tmp_path, OURS)
    server.own_group = True
    server.start()
    try:
        server.write("long.ipynb", LASTS, "print('before')", RUN)
        run = server.create("long.ipynb", "night")
        job = wait_until_it_trains(server, run, monkeypatch)
        server.end(number)
        assert job.wait(120).state is State.CANCELLED
        until(lambda: not processes_of(server), seconds=120.0)
        # What was done until then is kept, and a later server knows how it ended.
        [output] = (server.root / "jobs" / f"long-{run}").glob("*.ipynb")
        assert "before" in json.dumps(outputs_of(output, "stream"))
        server.start()
        ended = server.job(run)
        assert ended["status"] == "FAILED"
        assert "The run was stopped" in ended["status_message"]
        assert set(server.outputs(run)) >= {"ipynb", "html"}
    finally:
        server.stop()


@pytest.mark.full
def test_a_run_is_stopped_by_a_later_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Scheduler(tmp_path, OURS)
    server.start()
    try:
        server.write("long.ipynb", LASTS, RUN)
        run = server.create("long.ipynb")
        job = wait_until_it_trains(server, run, monkeypatch)
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        server.start()
        assert job.record().state is State.RUNNING
        stop(server, run)
        assert job.wait(120).state is State.CANCELLED
        until(lambda: server.job(run)["status"] == "STOPPED")
        until(lambda: not processes_of(server))
    finally:
        server.stop()


@pytest.mark.full
def test_a_run_outlives_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Scheduler(tmp_path, OURS)
    server.start()
    try:
        server.write("good.ipynb", "import pathlib, time", f"{_HELD}", TRAIN, RUN)
        run = server.create("good.ipynb")
        held = tmp_path / "data/scheduler_staging_area" / run
        until((held / "begun").exists, seconds=180.0)
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        (held / "go").touch()
        server.start()
        assert server.ended(run)["status"] == "COMPLETED"
        assert len(submarine_jobs_of(server, run, monkeypatch)) == 1
    finally:
        server.stop()


_HELD = "pathlib.Path('begun').touch()\nwhile not pathlib.Path('go').exists(): time.sleep(0.1)"
