"""A page with JupyterLab or Notebook 7 in it, driven as a person and by the application's commands.

Where a person's click is the point of a test, the test clicks; opening, running and saving go by
commands, which do not depend on where a menu lies.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError

from tests.browser.lab import ROOT, Lab

SHOTS = ROOT / "out" / "screenshots"
#: Milliseconds: pages load slowly beside a cluster on two cores.
LOAD = 90_000
_READY = """async () => {
  const widget = window.jupyterapp.shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  await widget.sessionContext.session.kernel.info;
}"""
_HAS_NOTEBOOK = "() => !!window.jupyterapp?.shell?.currentWidget?.sessionContext"
_numbers = itertools.count()


class LabPage:
    """One page and what it shows."""

    def __init__(self, page: Page, lab: Lab, *, url: str | None = None) -> None:
        self.page = page
        self.lab = lab
        self.url = url or lab.url
        #: Uncaught errors of scripts, and errors written to the console.
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))

    def login(self) -> None:
        """Get the cookie; the token shall not stand in any later address."""
        self.page.goto(f"{self.url}login?next={self.url}api/status")
        self.page.goto(f"{self.url}api/status?token={self.lab.token}")

    def open(self, notebook: Path) -> None:
        """Open a notebook in Lab, alone in a fresh workspace, and wait for its kernel."""
        name = notebook.relative_to(self.lab.notebooks)
        workspace = f"w{next(_numbers)}"
        self.page.goto(f"{self.url}lab/workspaces/{workspace}/tree/{name}?reset", timeout=LOAD)
        self.ready()

    def open_notebook7(self, notebook: Path) -> None:
        """Open a notebook in Notebook 7."""
        name = notebook.relative_to(self.lab.notebooks)
        self.page.goto(f"{self.url}notebooks/{name}", timeout=LOAD)
        self.ready()

    def reload(self) -> None:
        """As the browser's button."""
        self.page.reload(timeout=LOAD)
        self.ready()

    def ready(self) -> None:
        """Wait until the current notebook and its kernel are there."""
        self.page.wait_for_function(_HAS_NOTEBOOK, timeout=LOAD)
        self.page.evaluate(_READY)

    def command(self, name: str, **arguments: Any) -> None:
        """Execute a command of the application and wait for its end."""
        self.page.evaluate(
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args); }",
            [name, arguments],
        )

    def run_all(self) -> None:
        """Run all cells, to the end."""
        self.command("notebook:run-all-cells")

    def run_cell(self, index: int) -> None:
        """Run one cell, to the end."""
        self.page.evaluate(
            "index => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = index; }",
            index,
        )
        self.command("notebook:run-cell")

    def save(self) -> None:
        """Write the notebook with its outputs."""
        self.command("docmanager:save")

    def theme(self, name: str) -> None:
        """``Light`` or ``Dark``."""
        self.command("apputils:change-theme", theme=f"JupyterLab {name}")
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light",
            arg=str(name == "Light").lower(),
        )

    def outputs(self, index: int = -1) -> Locator:
        """The output area of the cell at ``index``; -1 for the last."""
        cells = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
        cell = cells.last if index == -1 else cells.nth(index)
        return cell.locator(".jp-OutputArea-output")

    def card(self, index: int = -1) -> Locator:
        """The job's card in the outputs of a cell."""
        return self.outputs(index).locator(".jp-Submarine-card")

    def job_ids(self) -> list[str]:
        """Job ids that the outputs hold, in the order of the cells."""
        found: list[str] = self.page.evaluate(
            """() => {
              const cells = window.jupyterapp.shell.currentWidget.context.model.toJSON().cells;
              const mime = 'application/vnd.submarine.job.v1+json';
              return cells.flatMap(cell => cell.outputs ?? [])
                .map(output => output.data?.[mime]?.job_id)
                .filter(job => job);
            }"""
        )
        return found

    def shot(self, name: str, part: Locator | None = None) -> Path:
        """Keep a picture of the page, or of a part of it, among the test's artefacts."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png"
        (part or self.page).screenshot(path=path)
        return path

    def shut_down_kernel(self) -> None:
        """End the notebook's kernel for good."""
        self.settle("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def settle(self, script: str) -> None:
        """Run a script that gives a promise and wait for it; in the page it would have no limit."""
        self.page.evaluate(
            """source => {
              const state = (window.submarineSettled = {});
              Promise.resolve(eval(source)()).then(
                () => (state.done = true),
                reason => (state.failed = String(reason))
              );
            }""",
            script,
        )
        self.page.wait_for_function(
            "() => window.submarineSettled.done || window.submarineSettled.failed", timeout=LOAD
        )
        failed = self.page.evaluate("() => window.submarineSettled.failed ?? ''")
        assert not failed, failed

    def close_dialogs(self) -> None:
        """Dismiss what Lab asks when its server or kernel was away."""
        dialogs = self.page.locator(".jp-Dialog")
        for _ in range(5):
            if dialogs.count() == 0:
                return
            with contextlib.suppress(TimeoutError):
                dialogs.last.locator("button.jp-mod-styled").first.click(timeout=2000)

    def without_its_server(self) -> None:
        """From now on close the dialog that Lab opens, at any moment, while its server is away."""
        lost = self.page.locator(".jp-Dialog", has_text="Server Connection Error")
        close = lost.get_by_role("button", name="Close")
        self.page.add_locator_handler(lost, lambda _: close.click())

    def wait_for(self, done: Callable[[], Any], timeout: float = 90) -> None:
        """Wait until ``done()``, while the page goes on."""
        deadline = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < deadline, "it did not come true"
            self.page.wait_for_timeout(200)

    def open_lab(self) -> None:
        """Open Lab with nothing in it."""
        self.page.goto(f"{self.url}lab/workspaces/w{next(_numbers)}?reset", timeout=LOAD)
        self.page.wait_for_function("() => !!window.jupyterapp", timeout=LOAD)
        self.page.evaluate("() => window.jupyterapp.restored")

    def open_log(self, job: str, task: str = "") -> Log:
        """A job's log as a tab."""
        self.command("submarine:logs", job=job, **({"task": task} if task else {}))
        log = Log(self.page)
        log.rows.first.wait_for(timeout=LOAD)
        return log


class Log:
    """The log view in a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.node = page.locator(".jp-Submarine-log")
        self.lines = self.node.locator(".jp-Submarine-log-lines")
        self.rows = self.lines.locator(".jp-Submarine-log-row")
        self.status = self.node.locator(".jp-Submarine-log-status")

    def row(self, text: str) -> Locator:
        """The rows with a text."""
        return self.rows.filter(has_text=text)

    def texts(self) -> list[str]:
        """The rows that the page holds now, in their order."""
        found: list[str] = self.lines.evaluate(
            "node => [...node.querySelectorAll('.jp-Submarine-log-row')].map(r => r.textContent)"
        )
        return found

    def collected(self, first: str) -> list[str]:
        """All lines that the view took in, found by scrolling up from the end to the first one.

        Each step must overlap the one before: a gap between two of them would be seen.
        """
        whole = self.texts()
        deadline = time.monotonic() + 90
        while whole[0] != first:
            assert time.monotonic() < deadline, f"it stays at {whole[0]!r}"
            self.lines.evaluate("node => { node.scrollTop = 0; }")
            self.page.wait_for_timeout(50)
            seen = self.texts()
            if not seen or seen[0] == whole[0]:
                continue  # it has not drawn what lies above
            assert whole[0] in seen, "the view jumped"
            whole = [*seen[: seen.index(whole[0])], *whole]
        return whole
