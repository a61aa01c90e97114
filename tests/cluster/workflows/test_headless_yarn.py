"""Headless runs against a real HDFS and YARN: notebooks there, jobs there, and runners killed."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.client import Session
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from submarine_workflows.locations import find_location
from tests.headless.notebook_runs import ENDED, LOAD, SLEEP, WAITING, NotebookRuns, cell, read, says
from tests.headless.test_runs import CODES, RUNNERS, card
from tests.waiting import until

pytestmark = pytest.mark.cluster
FOLDER = "hdfs:///tmp/submarine-headless"
ENDLESS = "%submarine run {name} --memory 256M --worker_launch_cmd 'sleep 3600'"


@pytest.fixture
def runs(
    tmp_path: Path, minicluster: Minicluster, yarn_profile: Profile, session: Session
) -> NotebookRuns:
    """A folder whose jobs go to the minicluster, by the driver of the other tests."""
    session.backend().prepare()
    environment = {**minicluster.environ(), "SUBMARINE_BACKEND": "yarn"}
    environment["SUBMARINE_STATE_DIR"] = str(yarn_profile.state_dir)
    return NotebookRuns(tmp_path, **environment)


@pytest.fixture
def hdfs(minicluster_env: Minicluster, session: Session) -> Iterator[str]:
    """A folder of HDFS for one test."""
    yield FOLDER
    storage, _ = session.backend().job_root()
    with contextlib.suppress(FileNotFoundError):
        storage.delete(FOLDER.removeprefix("hdfs://"), recursive=True)


def test_input_and_output_on_hdfs(runs: NotebookRuns, hdfs: str) -> None:
    path = runs.notebook("in", ("n = 1", ["parameters"]), "print('n is', n)", "1 / (n - 3)")
    find_location(f"{hdfs}/in.ipynb").write(path.read_bytes())
    path.unlink()
    ran = runs.run(
        *("papermill", "--engine", "submarine", f"{hdfs}/in.ipynb", f"{hdfs}/out.ipynb"),
        *("-p", "n", "2"),
    )
    assert ran.returncode == 0, ran.stderr
    document = nbformat.reads(find_location(f"{hdfs}/out.ipynb").read().decode(), 4)
    assert cell(document, "cell-1").outputs[0].text == "n is 2\n"
    # Other spellings of this HDFS: the output cannot replace the notebook that is executed.
    conf = HadoopConf(Path(runs.environment["HADOOP_CONF_DIR"]))
    web = conf.webhdfs[0].replace("http://", "webhdfs://") + hdfs.removeprefix("hdfs://")
    spelled = conf.default_fs.replace("//", "//me@") + hdfs.removeprefix("hdfs://")
    for other in (web, spelled):
        ran = runs.run("submarine", "run", f"{hdfs}/in.ipynb", "-o", f"{other}/in.ipynb")
        assert ran.returncode == 2, ran.stderr
        assert "would overwrite" in ran.stderr
    assert find_location(f"{web}/in.ipynb").read() == find_location(f"{spelled}/in.ipynb").read()
    ran = runs.run("submarine", "run", f"{hdfs}/in.ipynb", "-p", "n", "3", "--json")
    assert ran.returncode == 1, ran.stderr
    told = json.loads(ran.stdout)
    assert re.fullmatch(rf"{hdfs}/in-\d{{8}}T\d{{6}}\.ipynb", told["output"])
    document = nbformat.reads(find_location(told["output"]).read().decode(), 4)
    assert "n is 3" in cell(document, "cell-1").outputs[0].text
    assert cell(document, "cell-2").outputs[0].ename == "ZeroDivisionError"


@pytest.mark.full
def test_jobs_on_yarn_are_waited_for_and_their_applications_said(runs: NotebookRuns) -> None:
    source = runs.notebook(
        "good",
        LOAD,
        "%%submarine run first --memory 256M\nprint('on the node')",
        "%%submarine run second --memory 256M\nraise KeyError('missing')",
    )
    ran = runs.run("submarine", "run", source, "-o", "out.ipynb")
    assert ran.returncode == 1, ran.stderr
    assert re.search(r"first-[\w-]+ as application_\d+_\d+: ", ran.stderr)
    document = read(runs.folder / "out.ipynb")
    assert "on the node" in card(document, "cell-1")["text/plain"]
    assert card(document, "cell-2")[MIME_TYPE]["state"] == "FAILED"
    [failure] = [o for o in cell(document, "cell-2").outputs if o.output_type == "error"]
    assert "KeyError" in "\n".join(failure.traceback)


@pytest.mark.full
@pytest.mark.parametrize("number", list(CODES), ids=lambda number: number.name)
@pytest.mark.parametrize("runner", list(RUNNERS))
def test_no_runner_leaves_an_application(
    runs: NotebookRuns, runner: str, number: signal.Signals
) -> None:
    ours = runner in ("submarine run", "engine")
    name = f"kept-{runner.replace(' ', '-')}-{number.name}".lower()
    runs.notebook("slow", LOAD, ENDLESS.format(name=name), SLEEP)
    process = runs.start(*RUNNERS[runner])
    ready = (
        (lambda: says(runs.folder / "out.ipynb", WAITING) and runs.jobs().get(name) == "RUNNING")
        if ours
        else (lambda: runs.jobs().get(name) == "RUNNING")
    )
    code, said = runs.killed(process, number, ready)
    assert code == CODES[number] if ours else code != 0, said
    until(lambda: runs.jobs()[name] in ENDED, "its job has ended")
    until(lambda: not runs.processes(), f"no process is left: {runs.processes()}")
