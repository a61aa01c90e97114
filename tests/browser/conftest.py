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
from playwright.sync_api import Browser, Page, expect

from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from tests.browser.jobs import Jobs
from tests.browser.lab import Lab
from tests.browser.lab_page import LabPage

VIEWPORT = {"width": 1400, "height": 1000}
# Pages are slow beside a cluster on two cores; the usual five seconds are over now and then.
expect.set_options(timeout=60_000)


def chromium_arguments() -> dict[str, Any]:
    """Debian's Chromium; its sandbox does not work for root."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
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


@pytest.fixture
def new_lab_page(
    browser: Browser, lab: Lab, request: pytest.FixtureRequest
) -> Iterator[Callable[..., LabPage]]:
    """Makes lab_pages, each with cookies of its own; pictures of them if the test fails."""
    lab_pages: list[LabPage] = []

    def make(*, login: bool = True, **options: Any) -> LabPage:
        url = options.pop("url", None)
        context = browser.new_context(**{"viewport": VIEWPORT, **options})
        context.set_default_timeout(60_000)
        lab_page = LabPage(context.new_page(), lab, url=url)
        lab_pages.append(lab_page)
        if login:
            lab_page.login()
        return lab_page

    yield make
    report = getattr(request.node, "rep_call", None)
    for number, lab_page in enumerate(lab_pages):
        if report is None or report.failed:
            name = re.sub(r"\W+", "-", request.node.name)
            with contextlib.suppress(Exception):
                lab_page.shot(f"failed-{name}-{number}")
            print(f"errors in page {number}: {lab_page.errors}")
        lab_page.page.context.close()
    if report is None or report.failed:
        print(lab.said())


@pytest.fixture
def lab_page(new_lab_page: Callable[..., LabPage]) -> LabPage:
    """A page of a user who is logged in."""
    return new_lab_page()


@pytest.fixture
def page(lab_page: LabPage) -> Page:
    """The same, as pytest-playwright calls it."""
    return lab_page.page
