"""A kernel in a container is a choice in the launcher, runs cells, restarts, and dies visibly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from submarine_kernel.install import install_kernel
from submarine_kernel.remote.kernelspec import container_name, provisioning
from tests.browser.desk import LOAD, Desk
from tests.browser.jobs import Jobs

_SOURCE = """text => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.activeCellIndex = content.widgets.length - 1;
  content.activeCell.model.sharedModel.setSource(text);
}"""
NEW = (
    "() => { void window.jupyterapp.commands.execute('notebook:create-new', {kernelName: 'all'}) }"
)
IDLE = "() => window.jupyterapp.shell.currentWidget?.sessionContext?.kernelDisplayStatus === 'idle'"
TOAST = ".Toastify__toast"


@pytest.fixture
def run(desk: Desk) -> Callable[[str], None]:
    """Runs a text as the last cell, and adds an empty one below."""

    def run_text(text: str) -> None:
        desk.page.evaluate(_SOURCE, text)
        desk.command("notebook:run-cell-and-insert-below")

    return run_text


def test_a_kernel_from_the_launcher(desk: Desk, jobs: Jobs, run: Callable[[str], None]) -> None:
    stanza = provisioning("far", {"backend": "local", "memory": "400M"})
    assert stanza is not None
    name = container_name(stanza)
    prefix = str(desk.lab.scratch / "prefix")
    install_kernel(name="far", display_name=name, prefix=prefix, container=stanza)
    desk.page.goto(f"{desk.lab.url}lab/workspaces/far?reset", timeout=LOAD)
    desk.page.locator(".jp-LauncherCard", has_text=name).first.click(timeout=LOAD)
    desk.ready()

    run("import os; print(os.environ['SUBMARINE_JOB_ID']); a = 1")
    shown = desk.outputs(0).first
    expect(shown).to_contain_text("kernel-far-", timeout=LOAD)
    job = jobs.session.job(shown.inner_text().strip())
    assert not job.record().state.ended

    desk.settle("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    desk.ready()
    run("a")
    expect(desk.outputs(1).first).to_contain_text("NameError", timeout=LOAD)
    run("print(os.environ['SUBMARINE_JOB_ID'] if 'os' in dir() else __import__('os').getcwd())")
    expect(desk.outputs(2).first).to_contain_text(job.id, timeout=LOAD)

    begin(desk, "print('in it'); __import__('time').sleep(1000)")
    lost = desk.outputs(3)
    expect(lost.first).to_contain_text("in it", timeout=LOAD)
    handle: Any = job.handle or {}
    os.kill(int(handle["pid"]), signal.SIGKILL)
    expect(lost.nth(1)).to_contain_text("KernelGoneError: The container", timeout=LOAD)
    toast = desk.page.locator(TOAST, has_text="The kernel far has lost its container")
    expect(toast).to_be_visible(timeout=LOAD)
    desk.shot("kernel-gone")
    toast.get_by_role("button", name="New kernel").click()
    desk.page.wait_for_function(IDLE, timeout=LOAD)
    run("import os; print(os.environ['SUBMARINE_JOB_ID'])")
    expect(desk.outputs(4).first).to_contain_text("kernel-far-", timeout=LOAD)
    expect(desk.outputs(4).first).not_to_contain_text(job.id)


@pytest.mark.cluster
def test_a_kernel_that_waits_says_for_what_and_can_be_cancelled(desk: Desk) -> None:
    prefix = str(desk.lab.scratch / "prefix")
    stanza = provisioning("all", {"memory": "300M", "gpu": 4})
    install_kernel(name="all", display_name="All GPUs", prefix=prefix, container=stanza)
    desk.open_lab()
    desk.page.evaluate(NEW)
    desk.page.wait_for_function(IDLE, timeout=LOAD)
    desk.page.evaluate(NEW)
    toast = desk.page.locator(TOAST, has_text="The kernel all waits")
    expect(toast).to_contain_text("queue default has 0 of 4 GPUs free", timeout=LOAD)
    desk.shot("kernel-waits")
    toast.get_by_role("button", name="Cancel").click()
    desk.page.get_by_role("button", name="Cancel the job").click()
    dialog = desk.page.locator(".jp-Dialog", has_text="Error Starting Kernel")
    expect(dialog).to_contain_text("The job was cancelled", timeout=LOAD)
    expect(toast).to_have_count(0)
    dialog.get_by_role("button").first.click()
    # The other gives its GPUs back for the tests behind this one.
    for kernel in desk.lab.ask("api/kernels").json:
        desk.lab.ask(f"api/kernels/{kernel['id']}", "DELETE")
    desk.wait_for(lambda: all_ended(desk), 120)


def all_ended(desk: Desk) -> bool:
    """Whether no kernel of the kernelspec ``all`` is left."""
    rows = desk.lab.api("jobs")["jobs"]
    states = [row["state"] for row in rows if row["name"] == "kernel-all"]
    return bool(states) and set(states) <= {"SUCCEEDED", "CANCELLED"}


def begin(desk: Desk, text: str) -> None:
    """Run a text as the last cell, and do not wait for its end."""
    desk.page.evaluate(_SOURCE, text)
    desk.page.evaluate(
        "() => { void window.jupyterapp.commands.execute('notebook:run-cell-and-insert-below') }"
    )
