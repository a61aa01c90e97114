"""axe finds nothing in our elements, light and dark; pictures of both."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.desk import LabPage
from tests.browser.jobs import Jobs

OURS = [[".jp-Submarine-card"], [".jp-Submarine-log"], ["#jp-left-stack [class*=jp-Submarine]"]]


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_axe_finds_nothing_in_our_elements(desk: LabPage, jobs: Jobs, theme: str) -> None:
    running = jobs.start("import time\nprint('up', flush=True)\ntime.sleep(300)", "looks-running")
    log = "print('\\x1b[31mred \\x1b[32mgreen \\x1b[34mblue \\x1b[33myellow\\x1b[0m')\n"
    failed = jobs.finished(log + "raise ValueError('for the looks')", "looks-failed")
    good = jobs.finished(log, "looks-good")
    cells = [new_code_cell("1", outputs=[jobs.output(job)]) for job in (running, failed, good)]
    desk.open(desk.lab.write(f"looks-{theme}.ipynb", *cells))
    desk.theme(theme)
    for index, state in enumerate(("RUNNING", "FAILED", "SUCCEEDED")):
        card = desk.card(index)
        expect(card.get_by_text(state).first).to_be_visible()
        card.scroll_into_view_if_needed()
        expect(card.get_by_role("button", name="Logs")).to_be_visible()
        desk.shot(f"card-{state}-{theme}", card)
    desk.command("submarine:jobs")
    expect(
        desk.page.get_by_role("listbox", name="Jobs").get_by_role("option").first
    ).to_be_visible()
    found = violations(desk)
    desk.shot(f"lab-{theme}")
    desk.open_log(failed)
    desk.shot(f"log-{theme}")
    found += violations(desk)
    assert found == []
    jobs.session.job(running).cancel("seen enough")


def violations(desk: LabPage) -> list[str]:
    """What axe finds in our visible elements: rule, help, element."""
    present: list[Any] = [one for one in OURS if desk.page.locator(f"{one[0]}:visible").count() > 0]
    results = Axe().run(desk.page, context={"include": present})
    return [
        f"{one['id']}: {one['help']}: {node['html'][:300]} {node.get('failureSummary', '')[:300]}"
        for one in results.response["violations"]
        for node in one["nodes"]
    ]
