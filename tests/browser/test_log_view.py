"""The log view: colours, progress bars, search, errors, follow, filter, download."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.desk import Desk, Log
from tests.browser.jobs import Jobs

PROGRAM = r"""
import os, sys
print("\x1b[31mred words\x1b[0m and plain ones")
for part in range(101):
    sys.stdout.write(f"\rprogress {part} %")
print()
for n in range(3000):
    print(f"line {n:05d}")
print("ValueError: nonsense at 17")
for n in range(3000, 6000):
    print(f"line {n:05d}")
print("a needle in the hay")
print("<b onclick='window.pwned=1'>not bold</b>")
print("the end", flush=True)
"""
#: Longer than any screen, and than what the view keeps in the page.
LONG = 6000


@pytest.fixture(scope="module")
def job(jobs: Jobs) -> str:
    """A job that has written a log of some length."""
    return jobs.finished(PROGRAM, "logged")


@pytest.fixture
def log(desk: Desk, job: str) -> Log:
    """Its log as a tab."""
    desk.open_lab()
    return desk.open_log(job)


def test_it_opens_at_the_end_and_goes_to_the_beginning(log: Log, desk: Desk) -> None:
    expect(log.row("the end")).to_be_in_viewport()
    expect(log.node.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    expect(log.status).to_contain_text("complete")
    assert log.rows.count() < LONG / 4
    expect(log.row("not bold")).to_contain_text("<b onclick=")
    desk.shot("log-end")
    log.lines.focus()
    desk.page.keyboard.press("Home")
    red = log.row("red words").locator(".jp-Submarine-fg-red")
    expect(red).to_have_text("red words")
    expect(log.row("progress")).to_have_count(1)
    expect(log.row("progress")).to_have_text("progress 100 %")
    desk.shot("log-beginning")
    desk.page.keyboard.press("End")
    expect(log.row("the end")).to_be_in_viewport()
    assert desk.page.evaluate("() => window.pwned") is None
    assert desk.errors == []


def test_search_is_the_server_s_and_goes_from_match_to_match(log: Log, desk: Desk) -> None:
    field = log.node.get_by_role("searchbox", name="Search the log")
    field.fill("line 0001")
    field.press("Enter")
    count = log.node.locator(".jp-Submarine-log-count")
    expect(count).to_have_text(re.compile(r"^\d+ of 10$"))
    shown = log.row("line 0001").locator("mark").first
    expect(shown).to_be_in_viewport()
    first = count.text_content()
    field.press("Enter")
    expect(count).not_to_have_text(first or "")
    field.press("Shift+Enter")
    expect(count).to_have_text(first or "")
    desk.shot("log-search")
    field.fill("no such words")
    expect(count).to_have_text("no match")
    log.node.get_by_role("button", name="Regular expression").click()
    field.fill("needle|hay$")
    expect(count).to_have_text(re.compile("of 2$|2 matches"))


def test_next_error_finds_it(log: Log, desk: Desk) -> None:
    log.node.get_by_role("button", name="Next error").click()
    expect(log.row("ValueError: nonsense")).to_be_in_viewport()
    desk.shot("log-next-error")


def test_follow_stays_where_a_reader_looks(desk: Desk, jobs: Jobs) -> None:
    desk.open_lab()
    ticking = "import time\nfor n in range(3000):\n    print(f'tick {n:05d}', flush=True)\n"
    job = jobs.start(ticking + "    time.sleep(0.02)", "ticking")
    log = desk.open_log(job)
    desk.wait_for(lambda: log.texts()[-1] >= "tick 00100")
    log.lines.evaluate("node => { node.scrollTop = 200; }")
    follow = log.node.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    top = log.lines.evaluate("node => node.scrollTop")
    desk.page.wait_for_timeout(1500)
    assert abs(log.lines.evaluate("node => node.scrollTop") - top) < 40
    follow.click()
    desk.page.wait_for_timeout(500)
    last = log.texts()[-1]
    desk.page.wait_for_timeout(1000)
    assert log.texts()[-1] > last
    jobs.session.job(job).cancel("seen enough")


def test_one_task_of_several_and_the_file_of_it(desk: Desk, jobs: Jobs) -> None:
    gang = "import os\nprint('i am', os.environ['SUBMARINE_INDEX'], flush=True)"
    job = jobs.finished(gang, "gang", workers=2, framework="any", policy="all")
    desk.open_lab()
    log = desk.open_log(job)
    expect(log.row("i am 0")).to_contain_text("worker:0")
    expect(log.row("i am 1")).to_contain_text("worker:1")
    desk.shot("log-all-tasks")
    log.node.get_by_role("combobox", name="Task").select_option("worker:1")
    expect(log.row("i am 0")).to_have_count(0)
    expect(log.row("i am 1")).to_be_visible()
    log.node.get_by_role("combobox", name="Stream").select_option("stdout")
    with desk.page.expect_download() as download:
        log.node.get_by_role("button", name="Download").click()
    assert "i am 1" in download.value.path().read_text()


def test_long_lines_wrap_when_asked(desk: Desk, jobs: Jobs) -> None:
    job = jobs.finished("print('wide ' * 400)", "wide")
    desk.open_lab()
    log = desk.open_log(job)
    row = log.row("wide").first
    height = "node => node.getBoundingClientRect().height"
    before = row.evaluate(height)
    log.node.get_by_role("button", name="Wrap").click()
    assert row.evaluate(height) > 3 * before
