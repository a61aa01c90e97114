"""The job's page at the application's tracking URL, in Chromium through YARN's proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from submarine_jobs.client import Session
from submarine_jobs.model import Resources, Role
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import State
from tests.browser.lab_page import SHOTS
from tests.cluster.own_cluster import own_profile
from tests.submission import submitting
from tests.waiting import until

pytestmark = pytest.mark.cluster

#: Milliseconds; the cluster may be busy.
TIMEOUT = 120_000
COMMAND = """echo '<script>alert(1)</script>'; echo report:progress:0.6
while ! test -e '{go}'; do sleep 0.1; done"""


@pytest.fixture
def session(minicluster: Minicluster, tmp_path: Path) -> Iterator[Session]:
    with own_profile(minicluster.environ(), tmp_path / "state") as profile:
        yield Session(profile)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_the_page_of_a_gang_at_its_tracking_url(
    session: Session, page: Page, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    command = COMMAND.format(go=go)
    roles = (
        Role("ps", 1, Resources(256), command=command, kind="untracked"),
        Role("worker", 2, Resources(300, 2, gpus=1), command=command),
    )
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    with submitting(session, backend="yarn") as submit:
        job = submit(
            "pass",
            "<img src=x onerror=alert(1)>",
            roles=roles,
            framework="any",
            policy="all",
            quicklinks={
                "<b onclick=alert(2)>": "http://board.example/",
                "bad": "javascript:alert(3)",
            },
        )
        backend: Any = session.backend()

        def tracking_url() -> str:
            handle = backend.find(job.id) or {}
            app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]
            return str(app["trackingUrl"]) if app["state"] == "RUNNING" else ""

        page.goto(until(tracking_url, "the application runs", 180))
        expect(page).to_have_url(re.compile(r".*/pages/job/$"), timeout=TIMEOUT)
        expect(page.get_by_role("heading", level=1)).to_have_text("<img src=x onerror=alert(1)>")
        states = page.locator("td[data-name=State] .state")
        expect(states).to_have_text(["RUNNING"] * 3, timeout=TIMEOUT)
        expect(page.locator("td[data-name=Progress]").nth(1)).to_contain_text("60 %")
        expect(page.get_by_role("link", name="<b onclick=alert(2)>")).to_have_attribute(
            "href", "http://board.example/"
        )
        expect(page.get_by_role("link", name="bad")).to_have_count(0)
        for width in (1280, 800):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            SHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SHOTS / f"yarn-page-{width}.png", full_page=True)
        page.set_viewport_size({"width": 1280, "height": 900})
        # A link leads to the log as YARN shows it.
        page.get_by_role("link", name="log").first.click()
        expect(page).to_have_url(re.compile(r"/node/containerlogs/container_"), timeout=TIMEOUT)
        expect(page.locator("body")).to_contain_text("ps.log", timeout=TIMEOUT)
        assert dialogs == []
        go.touch()
        assert job.wait(180).state is State.SUCCEEDED
