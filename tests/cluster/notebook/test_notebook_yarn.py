"""A notebook on a real YARN: cards, tracebacks and interrupts as on the local backend."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.model import Profile
from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster.cluster import Minicluster
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.cluster


@pytest.fixture
def notebook(tmp_path: Path, minicluster: Minicluster, yarn_profile: Profile) -> Iterator[Notebook]:
    """A kernel whose jobs go to the minicluster, by the driver of the other tests."""
    install_kernel(prefix=str(tmp_path))
    environment = {
        **minicluster.environ(),
        "SUBMARINE_BACKEND": "yarn",
        "SUBMARINE_STATE_DIR": str(yarn_profile.state_dir),
    }
    kernels = tmp_path / "share" / "jupyter" / "kernels"
    with contextlib.closing(Notebook(tmp_path, kernels, environment=environment)) as opened:
        yield opened


def test_cells_become_a_job_with_a_gpu_and_come_back(notebook: Notebook) -> None:
    notebook.good("%%submarine --only --file model.py\ndef f(x):\n    return x / 4")
    notebook.good("%%submarine --only\nfrom model import f\nprint('on the node')\nacc = f(3)")
    ran = notebook.good("job = %submarine run demo --gpu 1 --memory 512M --wait --return acc")
    last = ran.updates[-1]["data"]
    assert last[MIME_TYPE]["state"] == "SUCCEEDED"
    assert last[MIME_TYPE]["job_dir"].startswith("hdfs://")
    assert "Returned acc: 0.75" in last["text/plain"]
    assert "| on the node" in last["text/plain"]
    assert re.search(r'<a href="http://[^"]+application_\d+_\d+', last["text/html"])
    assert "1 GPU" in last["text/plain"]


def test_a_failure_leads_to_the_cell(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nx = 0\n1 / x")
    ran = notebook.run("%submarine run demo --memory 512M --wait")
    assert ran.ename == "JobFailedError"
    shown = re.sub("\x1b\\[[0-9;]*m", "", ran.traceback)
    assert "Cell In[1], line 3" in shown
    assert "----> 3 1 / x" in shown


def test_a_killed_kernel_leaves_the_job_alone(notebook: Notebook) -> None:
    go = notebook.folder / "go"
    notebook.good(
        "%%submarine --only\nimport os, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.1)\nprint('went on')"
    )
    job_id = notebook.good("%submarine run demo --memory 512M").cards[0]["job_id"]
    notebook.restart()
    go.touch()
    ran = notebook.good(f"%submarine wait {job_id}")
    assert "| went on" in [*ran.displays, *ran.updates][-1]["data"]["text/plain"]


def test_an_interrupted_wait_leaves_the_job_and_cancel_ends_it(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nimport time\nprint('up', flush=True)\ntime.sleep(300)")
    ran = notebook.send("%submarine run demo --memory 512M --wait")
    notebook.until(lambda: any("| up" in u["data"]["text/plain"] for u in ran.updates))
    notebook.manager.interrupt_kernel()
    notebook.wait(ran)
    assert "goes on" in ran.stdout
    assert notebook.good("%submarine show last").cards[0]["state"] == "RUNNING"
    notebook.good("%submarine cancel last")
    assert notebook.good("%submarine show last").cards[0]["state"] == "CANCELLED"


def test_refusals_of_the_cluster_are_sentences(notebook: Notebook) -> None:
    notebook.good("%%submarine --only\nx = 1")
    for options, words in (("--memory 900G", "900"), ("--queue nothing-here", "nothing-here")):
        ran = notebook.run(f"%submarine run demo {options}")
        assert ran.ename == "RefusedError"
        assert words in ran.traceback or "memory" in ran.traceback
        assert "Exception" not in ran.traceback
        assert "Traceback" not in ran.traceback
