"""One JupyterLab, one Chromium and the run's minicluster for all browser tests."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.browser.jobs import Jobs
from tests.browser.lab import Lab
from tests.browser.lab_page import BROWSERS, LabPage

VIEWPORT = {"width": 1400, "height": 1000}
# Pages are slow beside a cluster on two cores; the usual five seconds are over now and then.
expect.set_options(timeout=60_000)


def chromium_arguments() -> dict[str, Any]:
    """The Chromium of this machine; its sandbox does not work for root."""
    for name in BROWSERS:
        if path := shutil.which(name):
            words = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.getuid() == 0 else [])]
            return {"executable_path": path, "args": words}
    raise FileNotFoundError("There is no Chromium on this machine: run scripts/setup.sh chromium.")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Arguments of the browser that pytest-playwright starts."""
    return chromium_arguments()


@pytest.fixture(scope="session")
def lab(minicluster: Minicluster) -> Iterator[Lab]:
    """A server whose jobs go to the minicluster; ``--backend local`` works too."""
    # Short: sockets lie below it.
    scratch = Path(tempfile.mkdtemp(prefix="submarine-lab-"))
    cluster = minicluster.environ()
    server = Lab(scratch, {**cluster, "SUBMARINE_BACKEND": "yarn"})
    try:
        server.start()
        yield server
    finally:
        server.close()
        with contextlib.suppress(Exception):
            _stop_driver(cluster, scratch / "state")
        shutil.rmtree(scratch, ignore_errors=True)


def _stop_driver(cluster: dict[str, str], state: Path) -> None:
    from submarine_jobs.backends.yarn.driver import stop_driver

    java = Path(cluster["JAVA_HOME"]) if "JAVA_HOME" in cluster else None
    stop_driver(
        Profile(
            backend="yarn",
            hadoop_conf_dir=Path(cluster["HADOOP_CONF_DIR"]),
            java_home=java,
            state_dir=state,
        )
    )


@pytest.fixture(scope="session")
def jobs(lab: Lab) -> Iterator[Jobs]:
    """Local jobs of the lab's user; what still runs at the end is cancelled."""
    with contextlib.closing(Jobs(lab)) as started:
        yield started


class SharedContext:
    """The browser context of a user who is logged in, for all tests that need no other.

    Pages of one context share the cache: a new context loads and compiles JupyterLab anew, which
    takes twice the CPU time. What JupyterLab keeps is on its server, by workspace.
    """

    def __init__(self, browser: Browser, lab: Lab) -> None:
        self._browser = browser
        self._lab = lab
        self._context: BrowserContext | None = None

    def page(self) -> LabPage:
        """Open a page."""
        if self._context is None:
            self._context = new_context(self._browser)
        lab_page = LabPage(self._context.new_page(), self._lab)
        lab_page.login()
        return lab_page

    def close(self) -> None:
        """Close the context and its pages; the next page gets a new one."""
        if self._context is not None:
            self._context.close()
            self._context = None


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Open a context with the size and the patience of all tests."""
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(60_000)
    return context


@pytest.fixture(scope="session")
def shared_context(browser: Browser, lab: Lab) -> Iterator[SharedContext]:
    """The context that `lab_page` uses."""
    with contextlib.closing(SharedContext(browser, lab)) as shared:
        yield shared


@pytest.fixture
def new_lab_page(
    browser: Browser, lab: Lab, request: pytest.FixtureRequest
) -> Iterator[Callable[..., LabPage]]:
    """Makes lab_pages, each with cookies of its own; pictures of them if the test fails."""
    lab_pages: list[LabPage] = []

    def make(*, login: bool = True, **options: Any) -> LabPage:
        url = options.pop("url", None)
        context = new_context(browser, **options)
        lab_page = LabPage(context.new_page(), lab, url=url)
        lab_pages.append(lab_page)
        if login:
            lab_page.login()
        return lab_page

    yield make
    report_failure(request, lab_pages)
    for lab_page in lab_pages:
        lab_page.page.context.close()


@pytest.fixture
def lab_page(shared_context: SharedContext, request: pytest.FixtureRequest) -> Iterator[LabPage]:
    """A page of a user who is logged in, with the cookies and the cache of the other tests."""
    lab_page = shared_context.page()
    yield lab_page
    if report_failure(request, [lab_page]):
        shared_context.close()
    else:
        lab_page.page.close()


def report_failure(request: pytest.FixtureRequest, lab_pages: list[LabPage]) -> bool:
    """Say whether the test failed; if it did, take pictures and print what its pages said."""
    report = getattr(request.node, "rep_call", None)
    if report is not None and not report.failed:
        return False
    for number, lab_page in enumerate(lab_pages):
        name = re.sub(r"\W+", "-", request.node.name)
        with contextlib.suppress(Exception):
            lab_page.shot(f"failed-{name}-{number}")
        print(f"errors in page {number}: {lab_page.errors}")
    print(lab_pages[0].lab.said() if lab_pages else "")
    return True


@pytest.fixture
def page(lab_page: LabPage) -> Page:
    """The same, as pytest-playwright calls it."""
    return lab_page.page
