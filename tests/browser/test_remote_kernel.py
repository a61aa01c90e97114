"""A kernel in a container is a choice in the launcher, runs cells, restarts, and dies visibly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from submarine_jobs.client import Job
from submarine_kernel.kernelspecs import install_kernel, provisioning
from tests.browser.jobs import Jobs
from tests.browser.lab import Lab
from tests.browser.lab_page import LOAD, LabPage

_SOURCE = """text => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.activeCellIndex = content.widgets.length - 1;
  content.activeCell.model.sharedModel.setSource(text);
}"""
NEW = (
    "() => { void window.jupyterapp.commands.execute('notebook:create-new', {kernelName: 'all'}) }"
)
IDLE = "() => window.jupyterapp.shell.currentWidget?.sessionContext?.kernelDisplayStatus === 'idle'"
CONSOLE = """name => {
  const wish = { kernelPreference: { name }, activate: true };
  void window.jupyterapp.commands.execute('console:create', wish);
}"""
#: What the page's server says of the kernels that it starts, once one of them waits for that.
_STARTS = """words => new Promise(found => {
  const { wsUrl } = window.jupyterapp.serviceManager.serverSettings;
  const socket = new WebSocket(`${wsUrl}submarine/api/v1/channel`);
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'hello') {
      socket.send(JSON.stringify({ op: 'subscribe', id: 1, kind: 'starts' }));
    } else if (message.starts?.some(start => start.words.includes(words))) {
      socket.close();
      found(message.starts);
    }
  };
})"""
#: Prints which job the kernel is.
JOB = "import os; print(os.environ['SUBMARINE_JOB_ID'])"
#: What `kernel install` calls a kernel of so much memory.
FAR = "Python (400M)"
TOAST = ".Toastify__toast"


@pytest.fixture
def run(lab_page: LabPage) -> Callable[[str], None]:
    """Runs a text as the last cell, and adds an empty one below."""

    def run_text(text: str) -> None:
        lab_page.page.evaluate(_SOURCE, text)
        lab_page.command("notebook:run-cell-and-insert-below")

    return run_text


@pytest.fixture
def far(lab: Lab) -> str:
    """Name of a kernelspec whose container is a process of this machine."""
    stanza = provisioning("far", {"backend": "local", "memory": "400M"})
    assert stanza is not None
    prefix = str(lab.scratch / "prefix")
    install_kernel(name="far", display_name=FAR, prefix=prefix, container=stanza)
    return "far"


def end(job: Job) -> None:
    """The container is lost."""
    handle: Any = job.handle or {}
    os.kill(int(handle["pid"]), signal.SIGKILL)


def restart_server(lab_page: LabPage) -> None:
    """End it without a shutdown, like a machine that runs out of memory."""
    lab_page.lab.kill()
    lab_page.lab.start()


def test_a_kernel_from_the_launcher(
    far: str, lab_page: LabPage, jobs: Jobs, run: Callable[[str], None]
) -> None:
    lab_page.page.goto(f"{lab_page.lab.url}lab/workspaces/far?reset", timeout=LOAD)
    lab_page.page.locator(".jp-LauncherCard", has_text=FAR).first.click(timeout=LOAD)
    lab_page.ready()

    run(f"{JOB}; a = 1")
    shown = lab_page.outputs(0).first
    expect(shown).to_contain_text("kernel-far-", timeout=LOAD)
    job = jobs.session.job(shown.inner_text().strip())
    assert not job.record().state.ended

    lab_page.settle("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    lab_page.ready()
    run("a")
    expect(lab_page.outputs(1).first).to_contain_text("NameError", timeout=LOAD)
    run("print(os.environ['SUBMARINE_JOB_ID'] if 'os' in dir() else __import__('os').getcwd())")
    expect(lab_page.outputs(2).first).to_contain_text(job.id, timeout=LOAD)

    begin(lab_page, "print('in it'); __import__('time').sleep(1000)")
    begin(lab_page, "print('its turn')")
    lost = lab_page.outputs(3)
    expect(lost.first).to_contain_text("in it", timeout=LOAD)
    end(job)
    expect(lost.nth(1)).to_contain_text("KernelLostError: The container", timeout=LOAD)
    expect(lab_page.outputs(4)).to_contain_text("This cell did not run", timeout=LOAD)
    toast = lab_page.page.locator(TOAST, has_text="has lost its container")
    expect(toast).to_be_visible(timeout=LOAD)
    lab_page.shot("kernel-gone")
    toast.get_by_role("button", name="New kernel").click()
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    run(JOB)
    expect(lab_page.outputs(5).first).to_contain_text("kernel-far-", timeout=LOAD)
    expect(lab_page.outputs(5).first).not_to_contain_text(job.id)
    lab_page.shut_down_kernel()


@pytest.mark.full
def test_a_console_shows_why_its_kernel_is_gone(far: str, lab_page: LabPage, jobs: Jobs) -> None:
    lab_page.open_lab()
    lab_page.page.evaluate(CONSOLE, far)
    prompt = lab_page.page.locator(".jp-CodeConsole-input .cm-content")
    prompt.click(timeout=LOAD)
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    lab_page.page.keyboard.type(f"{JOB}; __import__('time').sleep(1000)")
    lab_page.page.keyboard.press("Shift+Enter")
    shown = lab_page.page.locator(".jp-CodeConsole-content .jp-OutputArea-output")
    expect(shown.first).to_contain_text("kernel-far-", timeout=LOAD)
    end(jobs.session.job(shown.first.inner_text().strip()))
    expect(shown.nth(1)).to_contain_text("KernelLostError: The container", timeout=LOAD)
    toast = lab_page.page.locator(TOAST, has_text="has lost its container")
    expect(toast).to_be_visible(timeout=LOAD)
    lab_page.shot("console-gone")
    toast.get_by_role("button", name="New kernel").click()
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    lab_page.shut_down_kernel()


@pytest.mark.full
def test_a_kernel_is_there_again_after_its_server_was_killed(
    far: str, lab_page: LabPage, jobs: Jobs, run: Callable[[str], None]
) -> None:
    """By the notification in a page that was open meanwhile, and in a page that is loaded anew."""
    lab_page.without_its_server()
    path = lab_page.lab.write("kept.ipynb", kernel=far)
    lab_page.open(path)
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    run(f"x = 42; {JOB}")
    expect(lab_page.outputs(0)).to_contain_text("kernel-far-", timeout=LOAD)
    job = jobs.session.job(lab_page.outputs(0).inner_text().strip())
    lab_page.save()

    restart_server(lab_page)
    toast = lab_page.page.locator(TOAST, has_text="still runs in its container")
    expect(toast).to_be_visible(timeout=LOAD)
    lab_page.shot("kernel-lives")
    toast.get_by_role("button", name="Connect").click()
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    run("x += 1; print(x)")
    expect(lab_page.outputs(1)).to_have_text("43", timeout=LOAD)
    lab_page.save()

    restart_server(lab_page)
    lab_page.reload()
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    run(f"x += 1; print(x); {JOB}")
    expect(lab_page.outputs(2)).to_contain_text("44", timeout=LOAD)
    expect(lab_page.outputs(2)).to_contain_text(job.id)
    lab_page.shut_down_kernel()


@pytest.mark.full
@pytest.mark.cluster
def test_a_kernel_that_waits_says_for_what_and_can_be_cancelled(lab_page: LabPage) -> None:
    prefix = str(lab_page.lab.scratch / "prefix")
    stanza = provisioning("all", {"memory": "300M", "gpu": 4})
    install_kernel(name="all", display_name="All GPUs", prefix=prefix, container=stanza)
    lab_page.open_lab()
    lab_page.page.evaluate(NEW)
    lab_page.page.wait_for_function(IDLE, timeout=LOAD)
    lab_page.page.evaluate(NEW)
    toast = lab_page.page.locator(TOAST, has_text="The kernel all of Untitled")
    expect(toast).to_contain_text("queue default has 0 of 4 GPUs free", timeout=LOAD)
    lab_page.shot("kernel-waits")
    # The progress that the page gets before there is a job, by the ids that it knows.
    told = [
        start["notebook"].startswith("Untitled")
        for start in lab_page.page.evaluate(_STARTS, "0 of 4 GPUs free")
        if start["kernel"] == "all"
    ]
    assert told == [True]
    toast.get_by_role("button", name="Cancel").click()
    lab_page.page.get_by_role("button", name="Cancel job", exact=True).click()
    dialog = lab_page.page.locator(".jp-Dialog", has_text="Error Starting Kernel")
    expect(dialog).to_contain_text("The job was cancelled", timeout=LOAD)
    expect(toast).to_have_count(0)
    dialog.get_by_role("button").first.click()
    # The other gives its GPUs back for the tests behind this one.
    for kernel in lab_page.lab.ask("api/kernels").json:
        lab_page.lab.ask(f"api/kernels/{kernel['id']}", "DELETE")
    lab_page.wait_for(lambda: all_ended(lab_page), 120)


def all_ended(lab_page: LabPage) -> bool:
    """Whether no kernel of the kernelspec ``all`` is left."""
    rows = lab_page.lab.api("jobs")["jobs"]
    states = [row["state"] for row in rows if row["name"] == "kernel-all"]
    return bool(states) and set(states) <= {"SUCCEEDED", "CANCELLED"}


def begin(lab_page: LabPage, text: str) -> None:
    """Run a text as the last cell, and do not wait for its end."""
    lab_page.page.evaluate(_SOURCE, text)
    lab_page.page.evaluate(
        "() => { void window.jupyterapp.commands.execute('notebook:run-cell-and-insert-below') }"
    )
