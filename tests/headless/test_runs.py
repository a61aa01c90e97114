"""Whole runs on the local backend: parameters, jobs, outputs, exit codes, endings from outside."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import nbconvert
import pytest

from submarine_jobs.display import MIME_TYPE
from submarine_workflows.headless.saving import encode_notebook
from tests.headless.notebook_runs import (
    ENDED,
    LOAD,
    PATIENCE,
    SLEEP,
    WAITING,
    NotebookRuns,
    cell,
    read,
    says,
)
from tests.waiting import until

PARAMETERS = ("%%submarine --only --file train.py\nsteps = 1", ["parameters"])
TRAIN = """%%submarine --only --file train.py
for step in range(steps):
    print("step", step)
accuracy = steps / 4
"""
FAILING = "%%submarine run bad\nimport json\n\njson.loads('{')"
ENDLESS = "%submarine run {name} --worker_launch_cmd 'sleep 3600'"
#: What a kernel has printed but not sent when it dies is gone: this one waits until it is saved.
DIES = """\
import os, pathlib, time
print('be' + 'fore', flush=True)
while '"be' + 'fore' not in pathlib.Path('out.ipynb').read_text():
    time.sleep(0.1)
os._exit(9)"""


@pytest.fixture
def runs(tmp_path: Path) -> NotebookRuns:
    return NotebookRuns(tmp_path)


def card(document: Any, cell_id: str) -> Any:
    """The data of the one card below a cell."""
    [found] = [
        out.data for out in cell(document, cell_id).outputs if MIME_TYPE in out.get("data", {})
    ]
    return found


def error(document: Any, cell_id: str) -> Any:
    """The one error below a cell."""
    [found] = [out for out in cell(document, cell_id).outputs if out.output_type == "error"]
    return found


def test_parameters_reach_jobs_and_cards_are_final_in_all_forms(runs: NotebookRuns) -> None:
    source = runs.notebook(
        "good",
        LOAD,
        PARAMETERS,
        TRAIN,
        "job = %submarine run first --program train.py --return accuracy\njob",
        "%submarine run second --program train.py",
        "%submarine wait first\nresult = job.result['accuracy']",
        ("print('tagged')", ["submarine"]),
        "%submarine cells",
        "import sys\nsys.exit()",
        "1 / 0",
    )
    outputs = runs.folder / "outputs.json"
    runs.environment["JOB_OUTPUT_PROP_FILE"] = str(outputs)
    ran = runs.run(
        "submarine", "run", source, "-p", "steps", "3", "-o", "out.ipynb", "--return", "result"
    )
    assert ran.returncode == 0, ran.stderr
    document = read(runs.folder / "out.ipynb")
    assert json.loads(outputs.read_bytes()) == {"result": 0.75}
    assert [job for job in ("first-", "second-") if f"{job}" in ran.stderr] == ["first-", "second-"]
    for cell_id in ("cell-3", "cell-4"):
        shown = card(document, cell_id)
        assert shown[MIME_TYPE]["state"] == "SUCCEEDED"
        assert "SUCCEEDED" in shown["text/html"]
        assert "step 2" in shown["text/plain"]
    # Ids and tags went to the kernel: the tagged cell is collected, under its place.
    assert "main.py" in str(cell(document, "cell-7").outputs)
    # An early exit is no failure and is reported; its jobs are waited for.
    *run, left = [found.metadata.papermill.status for found in document.cells]
    assert (set(run), left) == ({"completed"}, "pending")
    assert "called sys.exit(), so the last 1 code cell did not run" in ran.stderr
    page, _ = nbconvert.HTMLExporter().from_notebook_node(document)
    assert re.search(r"first-\d{8}-[0-9a-f]{4}", page)
    assert page.count("SUCCEEDED") >= 2
    assert "application/vnd.submarine" not in re.sub(
        r"<script.*?</script>", "", page, flags=re.DOTALL
    )


#: Prints how front ends reach the kernel.
SOCKETS = """\
import json, os, stat, ipykernel
with open(ipykernel.get_connection_file()) as file:
    found = json.load(file)
folder = os.path.dirname(found["ip"])
print(found["transport"], oct(stat.S_IMODE(os.stat(folder).st_mode)), folder)
"""


def test_a_thread_that_outlives_the_cells_starts_its_jobs(runs: NotebookRuns) -> None:
    source = runs.notebook(
        "threads",
        LOAD,
        "import threading, submarine_jobs\n"
        "def work():\n"
        "    for code in 'true', 'exit 3':\n"
        "        submarine_jobs.run('thread', worker_launch_cmd=code).wait()\n"
        "threading.Thread(target=work).start()",
        SOCKETS,
    )
    ran = runs.run("submarine", "run", source, "-o", "out.ipynb", "--execute")
    assert ran.returncode == 1, ran.stderr
    document = read(runs.folder / "out.ipynb")
    # Other users of the machine cannot connect to the kernel.
    transport, mode, folder = cell(document, "cell-2").outputs[0].text.split()
    assert (transport, mode) == ("ipc", "0o700")
    assert not Path(folder).exists()
    shown = [
        out.data[MIME_TYPE]["state"]
        for found in document.cells
        for out in found.get("outputs", ())
        if MIME_TYPE in out.get("data", {})
    ]
    assert shown == ["SUCCEEDED", "FAILED"]
    assert "Exit code 3" in ran.stderr
    last = ran.stdout.rstrip().splitlines()[-1]
    assert re.search(
        r"out\.ipynb    failed after .*: Cell \[\d\] failed: JobFailedError: "
        r"Job thread-\S+ FAILED \(program_error\): .*Exit code 3",
        last,
    ), last


def test_a_failed_job_fails_papermill_with_its_traceback_below_its_cell(runs: NotebookRuns) -> None:
    source = runs.notebook(
        "bad", LOAD, FAILING, "%submarine run good --worker_launch_cmd true", "1 + 1"
    )
    ran = runs.run("papermill", "--engine", "submarine", source, "out.ipynb")
    assert ran.returncode == 1, ran.stderr
    document = read(runs.folder / "out.ipynb")
    found = error(document, "cell-1")
    assert found.ename == "JobFailedError"
    traceback = "\n".join(found.traceback)
    assert "json.loads" in traceback
    assert "JSONDecodeError" in traceback
    assert "JSONDecodeError" in ran.stderr
    # The cells behind it ran: a job is not waited for before the end.
    assert cell(document, "cell-3").outputs[0].data["text/plain"] == "2"
    assert card(document, "cell-1")[MIME_TYPE]["state"] == "FAILED"
    assert card(document, "cell-2")[MIME_TYPE]["state"] == "SUCCEEDED"
    assert cell(document, "cell-1").metadata.papermill.status == "failed"


def in_the_middle(runs: NotebookRuns, name: str = "slow") -> Path:
    """A notebook whose two jobs never end, and whose last cell but one neither."""
    return runs.notebook(
        name, LOAD, ENDLESS.format(name="one"), ENDLESS.format(name="two"), SLEEP, "print('last')"
    )


def nothing_is_orphaned(runs: NotebookRuns) -> None:
    until(lambda: all(state in ENDED for state in runs.jobs().values()), "all jobs have ended")
    until(lambda: not runs.processes(), f"no process is left: {runs.processes()}")


def test_sigterm_cancels_the_jobs_and_leaves_a_readable_output(runs: NotebookRuns) -> None:
    source, output = in_the_middle(runs), runs.folder / "out.ipynb"
    process = runs.start("submarine", "run", source, "-o", output, "--notify", "tee notice.json")
    code, said = runs.killed(process, signal.SIGTERM, lambda: says(output, WAITING))
    assert code == 143, said
    assert "The run was stopped by SIGTERM." in said
    document = read(output)
    statuses = [found.metadata.get("papermill", {}).get("status") for found in document.cells]
    assert [status for status in statuses if status] == [*["completed"] * 3, "failed", "pending"]
    names = [out.ename for out in cell(document, "cell-3").outputs if out.output_type == "error"]
    assert names == ["KeyboardInterrupt", "RunEnded"]
    assert {card(document, f"cell-{n}")[MIME_TYPE]["state"] for n in (1, 2)} == {"CANCELLED"}
    assert runs.jobs() == {"one": "CANCELLED", "two": "CANCELLED"}
    nothing_is_orphaned(runs)


def test_sigkill_of_the_engine_leaves_no_job_and_a_whole_notebook(
    runs: NotebookRuns,
) -> None:
    source, output = in_the_middle(runs), runs.folder / "out.ipynb"
    process = runs.start("papermill", "--engine", "submarine", source, output)
    code, said = runs.killed(process, signal.SIGKILL, lambda: says(output, WAITING))
    assert code == -signal.SIGKILL, said
    read(output)
    nothing_is_orphaned(runs)
    assert set(runs.jobs().values()) == {"CANCELLED"}


COMMON = "import sys, nbformat, nbclient; d = nbformat.read(sys.argv[1], 4); nbclient.execute(d)"
RUNNERS: dict[str, list[str]] = {
    "submarine run": ["submarine", "run", "slow.ipynb", "-o", "out.ipynb"],
    "engine": ["papermill", "--engine", "submarine", "slow.ipynb", "out.ipynb"],
    "papermill": ["papermill", "slow.ipynb", "out.ipynb"],
    "nbclient": ["python", "-c", COMMON, "slow.ipynb"],
    "jupyter execute": ["jupyter", "execute", "--output=out.ipynb", "slow.ipynb"],
}
CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}


@pytest.mark.full
@pytest.mark.parametrize("number", list(CODES), ids=lambda number: number.name)
@pytest.mark.parametrize("runner", list(RUNNERS))
def test_no_runner_leaves_a_job(runs: NotebookRuns, runner: str, number: signal.Signals) -> None:
    """Runners that are not ours wait in the cell of the first job."""
    ours = runner in ("submarine run", "engine")
    in_the_middle(runs)
    process = runs.start(*RUNNERS[runner])
    ready = (
        (lambda: says(runs.folder / "out.ipynb", WAITING))
        if ours
        else (lambda: "RUNNING" in runs.jobs().values())
    )
    code, said = runs.killed(process, number, ready)
    if ours:
        assert code == CODES[number], said
        read(runs.folder / "out.ipynb")
    assert code != 0
    nothing_is_orphaned(runs)


@pytest.mark.full
def test_sigterm_to_every_process_of_a_run_leaves_no_job(runs: NotebookRuns) -> None:
    """As a service manager ends a service: runner, kernel and guard at once."""
    source, output = in_the_middle(runs), runs.folder / "out.ipynb"
    process = runs.start("submarine", "run", source, "-o", output)

    def there() -> bool:
        assert process.poll() is None, process.communicate()
        return says(output, WAITING)

    try:
        until(there, "the run is in its middle")
        of_the_run = ("submarine", "ipykernel_launcher", "guard_process.py")
        ours = [p for p, line in runs.living() if any(word.endswith(of_the_run) for word in line)]
        assert len(ours) == len(of_the_run)
        for one in ours:
            one.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 143, said
    assert "The run was stopped by SIGTERM." in json.dumps(read(output).cells)
    nothing_is_orphaned(runs)


@pytest.mark.full
@pytest.mark.parametrize("runner", [name for name in RUNNERS if name != "submarine run"])
def test_every_runner_fails_with_a_failed_job(runs: NotebookRuns, runner: str) -> None:
    runs.notebook("slow", LOAD, FAILING, "print('later')")
    ran = runs.run(*RUNNERS[runner])
    assert ran.returncode == 1
    assert "JSONDecodeError" in ran.stderr
    nothing_is_orphaned(runs)


@pytest.mark.full
def test_a_limit_ends_a_run_and_detached_jobs_go_on(runs: NotebookRuns) -> None:
    source = in_the_middle(runs)
    ran = runs.run(
        *("submarine", "run", source, "-o", "out.ipynb", "--timeout", "25s"),
        *("--on-interrupt", "detach"),
    )
    assert ran.returncode == 124
    assert "longer than 25s" in ran.stderr
    assert runs.jobs() == {"one": "RUNNING", "two": "RUNNING"}
    assert "These jobs continue: one-" in ran.stderr
    for name in ("one", "two"):
        assert runs.run("submarine", "cancel", name).returncode == 0
    nothing_is_orphaned(runs)


@pytest.mark.full
def test_options_of_jobs_submit_what_is_collected_at_the_end(runs: NotebookRuns) -> None:
    source = runs.notebook("fit", LOAD, "%%submarine --only\naccuracy = 0.5", "rest = 1")
    outputs = runs.folder / "outputs.json"
    runs.environment["JOB_OUTPUT_PROP_FILE"] = str(outputs)
    ran = runs.run(
        *("submarine", "run", source, "-o", "out.ipynb", "--job", "memory=1G"),
        *("--return", "accuracy,rest", "--json"),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(outputs.read_bytes()) == {"accuracy": 0.5, "rest": 1}
    assert json.loads(ran.stdout)["returned"] == {"accuracy": 0.5, "rest": 1}
    shown = card(read(runs.folder / "out.ipynb"), "submarine-run")
    assert shown[MIME_TYPE]["state"] == "SUCCEEDED"
    assert runs.jobs() == {"fit": "SUCCEEDED"}


@pytest.mark.full
def test_a_dead_kernel_is_reported_and_its_output_is_kept(runs: NotebookRuns) -> None:
    source = runs.notebook("dies", DIES, "1")
    ran = runs.run("submarine", "run", source, "-o", "out.ipynb", "--execute")
    assert ran.returncode == 138
    assert "The kernel died" in ran.stderr
    document = read(runs.folder / "out.ipynb")
    assert "before" in cell(document, "cell-0").outputs[0].text
    assert error(document, "cell-0").ename == "DeadKernelError"
    assert encode_notebook(document)
    nothing_is_orphaned(runs)
