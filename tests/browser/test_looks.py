"""axe finds nothing in our elements, light and dark; pictures of both."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.jobs import Jobs
from tests.browser.lab_page import LabPage

OURS = [[".jp-Submarine-card"], [".jp-Submarine-log"], ["#jp-left-stack [class*=jp-Submarine]"]]


@pytest.mark.parametrize("theme", ["Light", pytest.param("Dark", marks=pytest.mark.full)])
def test_axe_finds_nothing_in_our_elements(lab_page: LabPage, jobs: Jobs, theme: str) -> None:
    running = jobs.start("import time\nprint('up', flush=True)\ntime.sleep(300)", "looks-running")
    log = "print('\\x1b[31mred \\x1b[32mgreen \\x1b[34mblue \\x1b[33myellow\\x1b[0m')\n"
    failed = jobs.finished(log + "raise ValueError('for the looks')", "looks-failed")
    good = jobs.finished(log, "looks-good")
    cells = [new_code_cell("1", outputs=[jobs.output(job)]) for job in (running, failed, good)]
    lab_page.open(lab_page.lab.write(f"looks-{theme}.ipynb", *cells))
    lab_page.theme(theme)
    for index, state in enumerate(("RUNNING", "FAILED", "SUCCEEDED")):
        card = lab_page.card(index)
        expect(card.get_by_text(state).first).to_be_visible()
        card.scroll_into_view_if_needed()
        expect(card.get_by_role("button", name="Logs")).to_be_visible()
        lab_page.shot(f"card-{state}-{theme}", card)
    lab_page.command("submarine:jobs")
    expect(
        lab_page.page.get_by_role("listbox", name="Jobs").get_by_role("option").first
    ).to_be_visible()
    found = violations(lab_page)
    lab_page.shot(f"lab-{theme}")
    lab_page.open_log(failed)
    lab_page.shot(f"log-{theme}")
    found += violations(lab_page)
    assert found == []
    jobs.session.job(running).cancel("seen enough")


def violations(lab_page: LabPage) -> list[str]:
    """What axe finds in our visible elements: rule, help, element."""
    present: list[Any] = [
        one for one in OURS if lab_page.page.locator(f"{one[0]}:visible").count() > 0
    ]
    results = Axe().run(lab_page.page, context={"include": present})
    return [
        f"{one['id']}: {one['help']}: {node['html'][:300]} {node.get('failureSummary', '')[:300]}"
        for one in results.response["violations"]
        for node in one["nodes"]
    ]
