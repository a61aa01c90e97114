"""One JupyterLab, one Chromium and the run's minicluster for all browser tests."""

from __future__ import annotations

import contextlib
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
from tests.browser.chromium import chromium_arguments
from tests.browser.jobs import Jobs
from tests.browser.lab import Lab
from tests.browser.lab_page import LabPage

VIEWPORT = {"width": 1400, "height": 1000}
# Pages are slow beside a cluster on two cores; the usual five seconds are over now and then.
expect.set_options(timeout=60_000)


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

    Pages of one context share the cache; in a new context JupyterLab is loaded and compiled again,
    which takes twice the CPU time. The state of JupyterLab is on its server, by workspace.
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
    """Open a context with the window size and the time limit of all tests."""
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(60_000)
    return context


@pytest.fixture(scope="session")
def shared_context(browser: Browser, lab: Lab) -> Iterator[SharedContext]:
    """The context of ``lab_page``."""
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
    report_failure(request, lab, lab_pages)
    for lab_page in lab_pages:
        lab_page.page.context.close()


@pytest.fixture
def lab_page(
    shared_context: SharedContext, lab: Lab, request: pytest.FixtureRequest
) -> Iterator[LabPage]:
    """A page of a user who is logged in, with the cookies and the cache of the other tests."""
    lab_page = shared_context.page()
    yield lab_page
    if report_failure(request, lab, [lab_page]):
        shared_context.close()
    else:
        lab_page.page.close()


def report_failure(request: pytest.FixtureRequest, lab: Lab, lab_pages: list[LabPage]) -> bool:
    """Return whether the test failed; take pictures and print errors and the log if it did."""
    report = getattr(request.node, "rep_call", None)
    if report is not None and not report.failed:
        return False
    for number, lab_page in enumerate(lab_pages):
        name = re.sub(r"\W+", "-", request.node.name)
        with contextlib.suppress(Exception):
            lab_page.shot(f"failed-{name}-{number}")
        print(f"errors in page {number}: {lab_page.errors}")
    print(lab.said())
    return True


@pytest.fixture
def page(lab_page: LabPage) -> Page:
    """The same, as pytest-playwright calls it."""
    return lab_page.page
