"""Notebooks whose kernel runs on the user's machine, with a ticket or with a keytab."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_jobs.display import MIME_TYPE
from submarine_kernel.kernelspecs import install_kernel
from submarine_minicluster import Minicluster
from tests.kerberos.helpers import User
from tests.notebook.conftest import Notebook

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(600)]

MODEL = "%%submarine --only --file model.py\ndef f(x):\n    return x / 4"
USES = "%%submarine --only\nfrom model import f\nprint('on', 'the node')\nacc = f(3)"
#: Fails once in the second task, after both have started.
FAILS_ONCE = """\
%%submarine --only
import os, pathlib, time
marker = pathlib.Path(os.environ["MARKER"])
print("rank", os.environ["RANK"], "begins", flush=True)
time.sleep(2)
if os.environ["RANK"] == "1" and not marker.exists():
    marker.touch()
    raise SystemExit(7)
print("rank", os.environ["RANK"], "ends", flush=True)
"""


@pytest.fixture
def open_notebook(tmp_path: Path) -> Iterator[Callable[[User], Notebook]]:
    """Open a notebook of a user."""
    install_kernel(prefix=str(tmp_path))
    with contextlib.ExitStack() as stack:

        def open_as(user: User) -> Notebook:
            kernels = tmp_path / "share" / "jupyter" / "kernels"
            opened = Notebook(user.directory, kernels, environment=user.environ)
            return stack.enter_context(contextlib.closing(opened))

        yield open_as


def test_cells_become_jobs_by_a_ticket(
    kerberos_minicluster: Minicluster,
    tmp_path: Path,
    open_notebook: Callable[[User], Notebook],
) -> None:
    """One task with a returned value, and then a gang whose second worker is restarted."""
    alice = User(kerberos_minicluster, "alice", tmp_path / "alice")
    notebook = open_notebook(alice)
    notebook.good(MODEL)
    notebook.good(USES)
    ran = notebook.good("job = %submarine run demo --memory 256M --wait --return acc")
    card = ran.updates[-1]["data"]
    assert card[MIME_TYPE]["state"] == "SUCCEEDED"
    assert card[MIME_TYPE]["job_dir"].startswith("hdfs://")
    assert "Returned acc: 0.75" in card["text/plain"]
    assert "| on the node" in card["text/plain"]
    assert "https://localhost:" in card["text/html"]

    notebook.good("%submarine clear")
    notebook.good(FAILS_ONCE)
    marker = tmp_path / "failed-once"
    ran = notebook.good(
        f"%submarine run gang --num_workers 2 --memory 256M --env MARKER={marker} --wait"
    )
    card = ran.updates[-1]["data"]
    assert card[MIME_TYPE]["state"] == "SUCCEEDED"
    shown = alice.json("show", card[MIME_TYPE]["job_id"])
    restarts = {task["task"]: task["restarts"] for task in shown["tasks"]}
    assert restarts == {"worker:0": 0, "worker:1": 1}


def test_cells_become_a_job_by_a_keytab(
    kerberos_minicluster: Minicluster,
    tmp_path: Path,
    open_notebook: Callable[[User], Notebook],
) -> None:
    alice = User(kerberos_minicluster, "alice", tmp_path / "alice", ticket=False)
    notebook = open_notebook(alice)
    notebook.good("%%submarine --only\nprint('by', 'keytab')")
    refused = notebook.run("%submarine run demo --memory 256M")
    assert refused.status == "error"
    assert "The cluster requires a Kerberos ticket" in refused.evalue
    assert "`%submarine login`" in refused.evalue
    keytab = kerberos_minicluster.keytab("alice")
    identity = f"--keytab {keytab} --principal alice@MINICLUSTER.TEST"
    ran = notebook.good(f"%submarine run demo --memory 256M {identity} --wait")
    assert ran.updates[-1]["data"][MIME_TYPE]["state"] == "SUCCEEDED"
    assert "| by keytab" in ran.updates[-1]["data"]["text/plain"]
    assert not (alice.directory / "no-ticket").exists()
