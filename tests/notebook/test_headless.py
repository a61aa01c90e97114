"""Headless runs: commands that wait, the barrier, and killed kernels."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import Headless
from submarine_magics.headless.barrier import MIME_TYPE as BARRIER
from tests.notebook.conftest import Notebook, Ran, clean_environment
from tests.reading import files_below
from tests.waiting import until

FAILING = "%%submarine --only\nimport json\n\njson.loads('{')"
UNTIL = "%submarine run {name} --worker_launch_cmd 'while [ ! -e {path} ]; do sleep 0.1; done'"
ENDLESS = "--worker_launch_cmd 'sleep 3600'"
WAIT = "from submarine_magics.headless.barrier import wait_for_jobs; wait_for_jobs()"
#: A thread that starts its job on request; a daemon thread and a pool's thread do not end.
LATE = """
import pathlib, threading, time
from concurrent.futures import ThreadPoolExecutor
import submarine_jobs
from submarine_magics.headless import barrier
barrier._SAID_AFTER = 0.0
def late():
    while not pathlib.Path({path!r}).exists():
        time.sleep(0.05)
    submarine_jobs.run("late", worker_launch_cmd="exit 3")
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()
threading.Thread(target=late, name="the late one").start()
"""
SAY_WHEN_IT_WAITS = """
from submarine_magics.headless.unhandled_jobs import UnhandledJobs
def wait(self, *given, before=UnhandledJobs.wait):
    print("now", flush=True)
    before(self, *given)
UnhandledJobs.wait = wait
"""


def state(shown: dict[str, Any]) -> str:
    return str(shown["data"][MIME_TYPE]["state"])


def end_of(ran: Ran, job_id: str = "") -> str:
    """Return the last state of a job in an output: of its first job, or of an earlier one."""
    wanted = job_id or started(ran)[0]
    # The card of an ended job is not updated.
    outputs = [item for item in ran.displays if MIME_TYPE in item["data"]] + ran.updates
    return state([item for item in outputs if item["data"][MIME_TYPE]["job_id"] == wanted][-1])


def started(ran: Ran) -> list[str]:
    return [card["job_id"] for card in ran.cards]


def told(ran: Ran) -> dict[str, Any]:
    """Return the content of a barrier's display."""
    [found] = [shown["data"][BARRIER] for shown in ran.displays if BARRIER in shown["data"]]
    return dict(found)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, kernels: Path) -> Iterator[Notebook]:
    """A kernel without a runner."""
    with contextlib.closing(Notebook(tmp_path_factory.mktemp("plain"), kernels)) as opened:
        yield opened


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, kernels: Path) -> Iterator[Notebook]:
    """A kernel of the runner."""
    headless = Headless(barrier=True, job_options={"memory": "200M"}).to_environment()
    folder = tmp_path_factory.mktemp("ours")
    with contextlib.closing(Notebook(folder, kernels, environment=headless)) as opened:
        yield opened


def record_of(notebook: Notebook, job_id: str) -> dict[str, Any] | None:
    """Return the job's record, from its directory."""
    for path in files_below(notebook.folder.parent):
        if path.parts[-2:] == (job_id, "record.json"):
            return dict(json.loads(path.read_text()))
    return None


def guards_of(notebook: Notebook) -> list[psutil.Process]:
    """Return the guard processes of this notebook's kernels."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(word.endswith("guard_process.py") for word in process.info["cmdline"] or []):
            with contextlib.suppress(psutil.Error):
                if process.environ().get("XDG_STATE_HOME") == str(notebook.folder.parent / "state"):
                    found.append(process)
    return found


def test_a_command_waits_for_its_job_and_fails_with_it(plain: Notebook) -> None:
    plain.good(FAILING, attended=False)
    ran = plain.run("%submarine run demo\nprint('never said')", attended=False)
    assert ran.ename == "JobFailedError"
    assert "JSONDecodeError" in ran.traceback
    assert "In[" in ran.traceback
    assert "never said" not in ran.stdout
    assert end_of(ran) == "FAILED"
    assert {MIME_TYPE, "text/html", "text/plain"} <= set(ran.updates[-1]["data"])


def test_an_interactive_session_does_not_wait(plain: Notebook, tmp_path: Path) -> None:
    end = tmp_path / "end"
    ran = plain.good(UNTIL.format(name="slow", path=end))
    assert state(ran.displays[0]) != "SUCCEEDED"
    end.touch()
    # The option `--wait` has the same effect in both cases.
    waited = plain.good("%submarine wait")
    assert end_of(waited) == "SUCCEEDED"
    again = plain.good("%submarine wait")
    assert "No job of this notebook is waited for any more." in again.stdout + str(again.displays)


def test_a_repeated_cell_waits_for_its_newest_job(plain: Notebook) -> None:
    plain.good("%submarine run bad --worker_launch_cmd 'exit 3'", cell_id="again")
    plain.good("%submarine run good --worker_launch_cmd 'exit 0'", cell_id="again")
    waited = plain.good("%submarine wait")
    assert [card["name"] for card in waited.cards] == ["good"]
    plain.good("%submarine run bad --worker_launch_cmd 'exit 3'", cell_id="again")
    assert plain.run("%submarine wait").ename == "JobFailedError"


def test_jobs_of_python_are_waited_for_at_the_end_of_the_cell(plain: Notebook) -> None:
    ran = plain.run(
        "import submarine_jobs, sys\n"
        "for code in 'true', 'false':\n"
        "    submarine_jobs.run('api', worker_launch_cmd=code)\n"
        "print('to the end')",
        attended=False,
    )
    assert "to the end" in ran.stdout
    assert ran.ename == "JobFailedError"
    assert "Exit code 1" in ran.traceback
    last = {shown["data"][MIME_TYPE]["job_id"]: state(shown) for shown in ran.updates}
    assert sorted(last[job_id] for job_id in started(ran)) == ["FAILED", "SUCCEEDED"]
    # An error that the cell has caught is not a failure of the run.
    plain.good(
        "try:\n"
        "    submarine_jobs.run('api', worker_launch_cmd='false', wait=True)\n"
        "except submarine_jobs.errors.JobFailedError:\n"
        "    pass",
        attended=False,
    )


def test_a_cell_that_exits_leaves_no_job_behind(plain: Notebook) -> None:
    ran = plain.run(
        "import submarine_jobs, sys\n"
        "submarine_jobs.run('exits', worker_launch_cmd='sleep 1')\n"
        "sys.exit(0)",
        attended=False,
    )
    assert ran.ename == "SystemExit"
    assert end_of(ran) == "SUCCEEDED"


def test_a_failed_submission_in_a_thread_fails_its_cell(plain: Notebook) -> None:
    ran = plain.run(
        "import submarine_jobs, threading\n"
        "def work():\n"
        "    submarine_jobs.run('thread', worker_launch_cmd='true', gpu=-1)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()",
        attended=False,
    )
    assert ran.ename == "UsageError"
    assert "--gpu" in ran.evalue


@pytest.mark.parametrize("how", [f"%submarine run x {ENDLESS}", "API"])
def test_an_interrupt_cancels(plain: Notebook, how: str) -> None:
    if how == "API":
        how = "import submarine_jobs\njob = submarine_jobs.run('x', worker_launch_cmd='sleep 3600')"
    ran = plain.send(how, attended=False)
    plain.until(lambda: any(state(shown) == "RUNNING" for shown in [*ran.displays, *ran.updates]))
    plain.manager.interrupt_kernel()
    plain.wait(ran)
    assert ran.ename == "WaitInterrupted"
    assert end_of(ran) == "CANCELLED"


def test_the_runner_waits_at_the_end_for_all_jobs(ours: Notebook, tmp_path: Path) -> None:
    end = tmp_path / "end"
    ours.good(FAILING, attended=False, cell_id="code")
    first = ours.good(UNTIL.format(name="first", path=end), attended=False, cell_id="one")
    second = ours.good("%submarine run second", attended=False, cell_id="two")
    third = ours.good(
        "import submarine_jobs\njob = submarine_jobs.run('third', worker_launch_cmd='true')",
        attended=False,
    )
    assert state(first.displays[0]) != "SUCCEEDED"
    assert "200" in first.displays[0]["data"]["text/plain"]
    end.touch()
    barrier = ours.good(WAIT, attended=False)
    found = told(barrier)
    assert found["detached"] == []
    [failed] = found["failed"]
    assert (failed["job_id"], failed["cell_id"]) == (started(second)[0], "two")
    assert failed["execution_count"] > 2
    assert failed["ename"] == "JobFailedError"
    assert "JSONDecodeError" in failed["evalue"]
    assert "json.loads" in "".join(failed["traceback"])
    final = {}
    for shown in barrier.updates:
        assert {MIME_TYPE, "text/html", "text/plain"} <= set(shown["data"])
        final[shown["data"][MIME_TYPE]["job_id"]] = state(shown)
    jobs = [*started(first), *started(second), *started(third)]
    assert [final[job_id] for job_id in jobs] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert told(ours.good(WAIT, attended=False)) == {"failed": [], "detached": []}


def test_a_thread_that_starts_its_job_late_is_waited_for(ours: Notebook, tmp_path: Path) -> None:
    go = tmp_path / "go"
    ours.good(LATE.format(path=str(go)), attended=False, cell_id="late")
    barrier = ours.send(WAIT, attended=False)

    def said() -> list[dict[str, Any]]:
        return [shown["data"][BARRIER] for shown in barrier.displays if BARRIER in shown["data"]]

    ours.until(lambda: said() == [{"threads": ["the late one"]}])
    go.touch()
    ours.wait(barrier)
    [_, end] = said()
    [failed] = end["failed"]
    assert failed["job_id"].startswith("late-")
    # Its own card shows how it ended.
    assert started(barrier) == [failed["job_id"]]
    assert end_of(barrier, failed["job_id"]) == "FAILED"
    assert "Exit code 3" in failed["evalue"]


def test_an_interrupted_barrier_still_reports(ours: Notebook) -> None:
    job = ours.good(f"%submarine run x {ENDLESS}", attended=False)
    ours.good(SAY_WHEN_IT_WAITS, attended=False)
    barrier = ours.send(WAIT, attended=False)
    ours.until(lambda: "now" in barrier.stdout)
    ours.manager.interrupt_kernel()
    ours.wait(barrier)
    assert barrier.status == "ok"
    assert told(barrier) == {"failed": [], "detached": []}
    assert end_of(barrier, started(job)[0]) == "CANCELLED"


def test_a_kernel_in_a_cell_has_no_barrier(ours: Notebook) -> None:
    ran = ours.good("import os; print(os.environ['SUBMARINE_HEADLESS'])", attended=False)
    inherited = Headless.from_environment({"SUBMARINE_HEADLESS": ran.stdout})
    assert inherited is not None
    assert not inherited.barrier
    assert inherited.job_options == {}


def test_a_kernel_that_exits_waits_first(tmp_path: Path, kernels: Path) -> None:
    headless = Headless(barrier=True).to_environment()
    with contextlib.closing(Notebook(tmp_path, kernels, environment=headless)) as notebook:
        ran = notebook.run("%submarine run x --worker_launch_cmd 'sleep 1'\nexit()", attended=False)
        assert end_of(ran) == "SUCCEEDED"
        until(lambda: not guards_of(notebook), "the guard ends with its kernel")


@pytest.mark.parametrize("mode", ["cancel", "detach"])
def test_jobs_of_a_killed_kernel(tmp_path: Path, kernels: Path, mode: str) -> None:
    headless = Headless(barrier=True, on_interrupt=mode).to_environment()
    with contextlib.closing(Notebook(tmp_path, kernels, environment=headless)) as notebook:
        ran = notebook.good(f"%submarine run x {ENDLESS}", attended=False)
        [job_id] = started(ran)
        assert len(guards_of(notebook)) == (mode == "cancel")
        pid = notebook.manager.provisioner.pid  # type: ignore[union-attr]
        os.killpg(os.getpgid(pid), signal.SIGKILL)
        if mode == "cancel":
            until(lambda: record_of(notebook, job_id) is not None, "the guard cancels the job")
            record = record_of(notebook, job_id)
            assert record is not None
            assert record["state"] == "CANCELLED"
            assert "the kernel that waited for it is gone" in record["detail"]
            until(lambda: not guards_of(notebook), "the guard ends")
            return
        command = [sys.executable, "-m", "submarine_jobs.cli", "cancel", job_id]
        environment = clean_environment(notebook.folder.parent)
        subprocess.run(command, env=environment, check=True, timeout=90, capture_output=True)
        record = record_of(notebook, job_id)
        assert record is not None
        assert "kernel" not in record["detail"]


def test_the_guard_imports_the_standard_library_only() -> None:
    """Before it acts, it imports the standard library only."""
    magics = Path(sys.modules["submarine_magics.headless.barrier"].__file__ or "").parents[1]
    script = magics / "jobs" / "guard_process.py"
    code = (
        f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='guard')\n"
        "print([m for m in sys.modules if m.startswith(('submarine', 'click', 'IPython'))])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
