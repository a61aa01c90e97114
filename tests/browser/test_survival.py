"""Networks that cut, laptops that sleep, servers that are killed: no line is lost or doubled."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.cutter import Cutter
from tests.browser.desk import LabPage, Log
from tests.browser.jobs import Jobs
from tests.browser.lab import Lab

LINES = 400
#: In the middle it waits for a file, so that what happens to it happens in the middle.
COUNTING = """
import pathlib, time
for n in range({lines}):
    print(f"line {{n:06d}}", flush=True)
    time.sleep(0.02)
    while n == {lines} // 2 and not pathlib.Path({flag!r}).exists():
        time.sleep(0.05)
print("all is said", flush=True)
"""
#: Milliseconds.
TIMEOUT = 90_000
EXPECTED = [*(f"line {n:06d}" for n in range(LINES)), "all is said"]


@pytest.fixture
def cutter(lab: Lab) -> Iterator[Cutter]:
    """A proxy before the server that lets everything through, so far."""
    with contextlib.closing(Cutter(lab.port)) as proxy:
        yield proxy


def counting(desk: LabPage, jobs: Jobs, name: str) -> tuple[str, Path]:
    """A job that counts, and the file that lets it go on."""
    flag = desk.lab.scratch / f"go-on-{name}-{secrets.token_hex(4)}"
    return jobs.start(COUNTING.format(lines=LINES, flag=str(flag)), name), flag


def whole(log: Log) -> list[str]:
    """All lines of a log that has ended."""
    expect(log.row("all is said")).to_be_visible(timeout=TIMEOUT)
    return log.collected(EXPECTED[0])


def test_connections_cut_every_few_seconds(
    new_desk: Callable[..., LabPage], jobs: Jobs, cutter: Cutter
) -> None:
    desk = new_desk(url=cutter.url)
    desk.open_lab()
    job, flag = counting(desk, jobs, "cut")
    log = desk.open_log(job)
    cutter.lifetime = 2
    cutter.cut()
    flag.touch()
    assert whole(log) == EXPECTED
    assert cutter.cuts >= 2
    assert desk.errors == []


@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.full)])
def test_a_laptop_that_sleeps(
    new_desk: Callable[..., LabPage], jobs: Jobs, cutter: Cutter, seconds: int
) -> None:
    desk = new_desk(url=cutter.url)
    desk.open_lab()
    job, flag = counting(desk, jobs, "asleep")
    log = desk.open_log(job)
    desk.page.wait_for_timeout(1000)
    cutter.sleep()
    flag.touch()
    time.sleep(seconds)
    before = log.texts()[-1]
    desk.page.wait_for_timeout(1000)
    assert log.texts()[-1] == before, "the proxy let something through"
    cutter.wake()
    assert whole(log) == EXPECTED


def test_a_server_killed_in_the_middle_of_a_log(desk: LabPage, jobs: Jobs, lab: Lab) -> None:
    job, flag = counting(desk, jobs, "orphan")
    cell = new_code_cell("%submarine run orphan", outputs=[jobs.output(job)])
    desk.open(lab.write("orphan.ipynb", cell))
    desk.without_its_server()
    card = desk.card()
    log = desk.open_log(job)
    desk.page.wait_for_timeout(1500)
    lab.kill()
    try:
        flag.touch()
        expect(log.status).to_contain_text("connection", timeout=TIMEOUT)
        desk.shot("server-killed")
    finally:
        lab.start()
    assert whole(log) == EXPECTED
    desk.close_dialogs()
    desk.page.locator(".lm-TabBar-tabLabel", has_text="orphan.ipynb").click()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)


def test_a_kernel_that_is_restarted(desk: LabPage) -> None:
    flag = desk.lab.scratch / f"go-on-restarted-{secrets.token_hex(4)}"
    cells = (
        "%%submarine --only\nimport pathlib, time\nprint('up', flush=True)\n"
        f"while not pathlib.Path({str(flag)!r}).exists():\n    time.sleep(0.1)",
        "%submarine run restarted --backend local",
    )
    desk.open(desk.lab.write("restarted.ipynb", *cells))
    desk.run_all()
    desk.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    expect(desk.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    flag.touch()
    expect(desk.card().get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)


def test_a_page_reloaded_in_the_middle_of_a_log(desk: LabPage, jobs: Jobs) -> None:
    desk.open_lab()
    job, flag = counting(desk, jobs, "reopened")
    desk.open_log(job)
    flag.touch()
    desk.page.reload(timeout=90_000)
    desk.page.wait_for_function("() => !!window.jupyterapp", timeout=90_000)
    desk.page.evaluate("() => window.jupyterapp.restored")
    assert whole(desk.open_log(job)) == EXPECTED
