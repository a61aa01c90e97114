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

from tests.browser.jobs import Jobs
from tests.browser.lab import Lab
from tests.browser.lab_page import LabPage, Log
from tests.browser.unreliable_proxy import UnreliableProxy

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
def proxy(lab: Lab) -> Iterator[UnreliableProxy]:
    """A proxy before the server that lets everything through, so far."""
    with contextlib.closing(UnreliableProxy(lab.port)) as proxy:
        yield proxy


def counting(lab_page: LabPage, jobs: Jobs, name: str) -> tuple[str, Path]:
    """A job that counts, and the file that lets it go on."""
    flag = lab_page.lab.scratch / f"go-on-{name}-{secrets.token_hex(4)}"
    return jobs.start(COUNTING.format(lines=LINES, flag=str(flag)), name), flag


def whole(log: Log) -> list[str]:
    """All lines of a log that has ended."""
    expect(log.row("all is said")).to_be_visible(timeout=TIMEOUT)
    return log.collected(EXPECTED[0])


@pytest.mark.full
def test_connections_cut_every_few_seconds(
    new_lab_page: Callable[..., LabPage], jobs: Jobs, proxy: UnreliableProxy
) -> None:
    lab_page = new_lab_page(url=proxy.url)
    lab_page.open_lab()
    job, flag = counting(lab_page, jobs, "cut")
    log = lab_page.open_log(job)
    proxy.lifetime = 2
    proxy.cut()
    flag.touch()
    assert whole(log) == EXPECTED
    assert proxy.cuts >= 2
    assert lab_page.errors == []


@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.full)])
def test_a_laptop_that_sleeps(
    new_lab_page: Callable[..., LabPage], jobs: Jobs, proxy: UnreliableProxy, seconds: int
) -> None:
    lab_page = new_lab_page(url=proxy.url)
    lab_page.open_lab()
    job, flag = counting(lab_page, jobs, "asleep")
    log = lab_page.open_log(job)
    lab_page.page.wait_for_timeout(1000)
    proxy.sleep()
    flag.touch()
    time.sleep(seconds)
    before = log.texts()[-1]
    lab_page.page.wait_for_timeout(1000)
    assert log.texts()[-1] == before, "the proxy let something through"
    proxy.wake()
    assert whole(log) == EXPECTED


def test_a_server_killed_in_the_middle_of_a_log(lab_page: LabPage, jobs: Jobs, lab: Lab) -> None:
    job, flag = counting(lab_page, jobs, "orphan")
    cell = new_code_cell("%submarine run orphan", outputs=[jobs.output(job)])
    lab_page.open(lab.write("orphan.ipynb", cell))
    lab_page.without_its_server()
    card = lab_page.card()
    log = lab_page.open_log(job)
    lab_page.page.wait_for_timeout(1500)
    lab.kill()
    try:
        flag.touch()
        expect(log.status).to_contain_text("connection", timeout=TIMEOUT)
        lab_page.shot("server-killed")
    finally:
        lab.start()
    assert whole(log) == EXPECTED
    lab_page.close_dialogs()
    lab_page.page.locator(".lm-TabBar-tabLabel", has_text="orphan.ipynb").click()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)


def test_a_kernel_that_is_restarted(lab_page: LabPage) -> None:
    flag = lab_page.lab.scratch / f"go-on-restarted-{secrets.token_hex(4)}"
    cells = (
        "%%submarine --only\nimport pathlib, time\nprint('up', flush=True)\n"
        f"while not pathlib.Path({str(flag)!r}).exists():\n    time.sleep(0.1)",
        "%submarine run restarted --backend local",
    )
    lab_page.open(lab_page.lab.write("restarted.ipynb", *cells))
    lab_page.run_all()
    lab_page.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    expect(lab_page.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    flag.touch()
    expect(lab_page.card().get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)


def test_a_page_reloaded_in_the_middle_of_a_log(lab_page: LabPage, jobs: Jobs) -> None:
    lab_page.open_lab()
    job, flag = counting(lab_page, jobs, "reopened")
    lab_page.open_log(job)
    flag.touch()
    lab_page.page.reload(timeout=90_000)
    lab_page.page.wait_for_function("() => !!window.jupyterapp", timeout=90_000)
    lab_page.page.evaluate("() => window.jupyterapp.restored")
    assert whole(lab_page.open_log(job)) == EXPECTED
