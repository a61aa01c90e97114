"""A user of the hub in a browser: login by the hub's OAuth flow, JupyterLab, a job."""

from __future__ import annotations

import json
import os
from typing import Any, cast

from playwright.sync_api import Browser, BrowserContext, Page, WebSocket

from tests.browser.calls import API
from tests.browser.conftest import new_context
from tests.browser.lab import Lab
from tests.browser.lab_page import LOAD, LabPage
from tests.hub.hub import PASSWORD, Hub
from tests.notebooks import write_notebook

PROGRAM = "%%submarine --only\nprint('hello from {name}')"


class Person:
    """A user who opens JupyterLab.

    Attributes
    ----------
    visited
        Paths of all pages, redirects included, in their order.
    greetings
        First messages of our websocket, by its address.
    """

    def __init__(self, hub: Hub, browser: Browser, name: str) -> None:
        self.hub, self.name = hub, name
        self.home = hub.accounts[name].home
        # What a LabPage uses of a Lab.
        self.url, self.notebooks = f"{hub.origin}/user/{name}/", self.home
        self.context: BrowserContext = new_context(browser)
        self.page: Page = self.context.new_page()
        self.lab = LabPage(self.page, cast("Lab", self))
        self.visited: list[str] = []
        self.greetings: dict[str, Any] = {}
        self.job = ""
        self.page.on(
            "request",
            lambda request: (
                self.visited.append(request.url.removeprefix(hub.origin).partition("?")[0])
                if request.is_navigation_request()
                else None
            ),
        )
        self.page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        if API in socket.url:
            socket.on("framereceived", lambda data: self._greeted(socket.url, data))

    def _greeted(self, url: str, data: str | bytes) -> None:
        self.greetings.setdefault(url, json.loads(data))

    def login(self) -> None:
        """Log in at the hub, which starts the server and leads to JupyterLab."""
        self.page.goto(f"{self.hub.origin}/", timeout=LOAD)
        self.page.get_by_label("Username").fill(self.name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/lab**", timeout=2 * LOAD)
        self.page.wait_for_function("() => !!window.jupyterapp", timeout=LOAD)

    def run_job(self) -> None:
        """Run a job from a notebook, on the local backend."""
        cells = (PROGRAM.format(name=self.name), "%submarine run hello --wait")
        notebook = write_notebook(self.home / "hello.ipynb", *cells, kernel="submarine")
        account = self.hub.accounts[self.name]
        os.chown(notebook, account.uid, account.uid)
        self.lab.open(notebook)
        self.lab.run_all()
        (self.job,) = self.lab.job_ids()

    def cookies(self) -> str:
        """Return the header ``Cookie`` with all cookies of the browser, whatever their paths."""
        return "; ".join(f"{it['name']}={it['value']}" for it in self.context.cookies())

    def cookie(self, name: str) -> str:
        """Return the value of a cookie of the user's server."""
        (value,) = (
            it["value"]
            for it in self.context.cookies()
            if (it["name"], it["path"]) == (name, f"/user/{self.name}/")
        )
        return value
