"""Workflows in cells: stored and drawn, run next to the kernel, watched, cancelled; their jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.conftest import Notebook, Ran

MIME = "application/vnd.submarine.workflow.v1+json"
#: The first node waits for a file, the second fails.
HELD = """%%submarine workflow held --schedule "0 30 2 ? * *"
nodes:
  - name: first
    type: command
    config: {command: "sh -c 'while ! [ -e go ]; do sleep 0.1; done'"}
  - name: second
    type: command
    config: {command: "sh -c 'echo it is broken; exit 3'"}
    dependsOn: [first]
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, kernels: Path) -> Iterator[Notebook]:
    """A kernel with a saved document."""
    scratch = tmp_path_factory.mktemp("flows")
    document = scratch / "work" / "digits.ipynb"
    environment = {"JPY_SESSION_NAME": str(document), "JUPYTER_PATH": str(kernels.parent)}
    with contextlib.closing(Notebook(scratch, kernels, environment=environment)) as opened:
        kernelspec = {"name": "submarine", "display_name": "x", "language": "python"}
        fit = new_code_cell("%submarine run fit.py --memory 256M", metadata={"tags": ["fit"]})
        other = new_code_cell("raise SystemExit('this cell is no part of it')")
        saved = new_notebook(cells=[other, fit], metadata={"kernelspec": kernelspec})
        nbformat.write(saved, document)
        (document.parent / "fit.py").write_text("print('fitted')\n")
        yield opened


def shown(ran: Ran) -> list[dict[str, Any]]:
    """Return the successive outputs of a workflow in an execution."""
    return [item["data"][MIME] for item in [*ran.displays, *ran.updates] if MIME in item["data"]]


def statuses(ran: Ran) -> dict[str, str]:
    """Return the states of the nodes in the last output."""
    return {node["name"]: node["status"] for node in shown(ran)[-1]["nodes"]}


def test_a_run_is_drawn_and_continues_after_the_kernel(kernel: Notebook) -> None:
    defined = kernel.good(HELD)
    (bundle,) = (item["data"] for item in defined.displays)
    assert set(bundle) == {MIME, "text/html", "text/plain"}
    assert "<svg" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert "Saved in held.flow" in bundle["text/plain"]
    assert "in digits.ipynb;" in (kernel.folder / "held.flow").read_text()
    assert "held" in kernel.complete("%submarine workflow run he")
    assert "dependsOn:" in kernel.complete(HELD + "    dep")

    ran = kernel.good("%submarine workflow run held")
    assert shown(ran)[0]["status"] == "RUNNING"
    kernel.until(lambda: statuses(ran)["first"] == "RUNNING")
    again = kernel.good("%submarine workflow status held")
    threads = kernel.good(
        "import threading\n[t.name for t in threading.enumerate()].count('submarine-runs')"
    )
    assert threads.result == {"text/plain": "1"}  # For any number of pictures.
    kernel.restart()
    after = kernel.good("%submarine workflow status held")
    assert shown(after)[0]["run"] == shown(again)[0]["run"] == shown(ran)[0]["run"]
    assert shown(after)[0]["status"] == "RUNNING"
    (kernel.folder / "go").touch()
    kernel.until(lambda: shown(after)[-1]["status"] == "FAILED")
    assert statuses(after) == {"first": "SUCCEEDED", "second": "FAILED"}
    last = after.updates[-1]
    assert last["transient"] == after.displays[0]["transient"]
    assert "ended with code 3" in last["data"]["text/plain"]
    assert "it is broken" in kernel.good("%submarine workflow logs held second").stdout


def test_a_run_is_cancelled_and_a_rejected_one_has_a_reason(kernel: Notebook) -> None:
    kernel.good(HELD.replace("held", "slow").replace("-e go", "-e never"))
    ran = kernel.good("%submarine workflow run slow")
    kernel.until(lambda: statuses(ran)["first"] == "RUNNING")
    refused = kernel.run("%submarine workflow run slow")
    assert refused.status == "error"
    assert "slow is already running" in refused.evalue + refused.traceback
    kernel.good("%submarine workflow cancel slow")
    kernel.until(lambda: shown(ran)[-1]["status"] == "KILLED")
    assert (
        "slow-" in kernel.good("%submarine workflow history slow").displays[0]["data"]["text/html"]
    )


def test_cells_of_the_notebook_are_a_node_with_its_jobs(
    kernel: Notebook,
) -> None:
    kernel.good("%%submarine workflow daily\nnodes:\n  - {name: train, cells: [fit]}\n")
    ran = kernel.run("%submarine workflow run daily", attended=False)
    told = kernel.run("%submarine workflow logs daily train").stdout
    assert ran.status == "ok", told
    assert shown(ran)[-1]["status"] == "SUCCEEDED"
    run = shown(ran)[-1]["run"]
    listed = kernel.good("jobs = %submarine list --workflow daily --json\njobs[0]['state']")
    assert listed.result == {"text/plain": "'SUCCEEDED'"}, told
    origin = kernel.good(
        "[(one['workflow'], one['workflow_run'], one['workflow_node']) for one in jobs]"
    )
    assert origin.result == {"text/plain": str([("daily", run, "train")])}


def test_an_invalid_cell_fails_with_its_line_and_changes_nothing(kernel: Notebook) -> None:
    ran = kernel.run("\n%%submarine workflow held\nnodes:\n  - {name: a, notebok: b.ipynb}\n")
    assert ran.ename == "WorkflowError"
    assert "line 4: A node has no `notebok:`; did you mean `notebook`?" in ran.traceback
    assert "\n" not in ran.traceback.split("did you mean `notebook`?")[1].strip()
    assert not list(kernel.folder.glob("*.tmp"))
