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
from tests.kernel.remote_rig import until

_SOURCE = """text => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.activeCellIndex = content.widgets.length - 1;
  content.activeCell.model.sharedModel.setSource(text);
}"""
_STATUS = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"


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

    handle: Any = job.handle or {}
    os.kill(int(handle["pid"]), signal.SIGKILL)
    desk.page.wait_for_function(f"() => {_STATUS} === 'dead'", timeout=LOAD)
    until(lambda: "The container of the kernel is gone" in desk.lab.said())
