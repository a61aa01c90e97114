"""A gang with GPUs on YARN as its notebook shows it, from its start over a fault to its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.calls import API
from tests.browser.lab_page import LabPage

#: Worker 1 fails once: the two others, and its second attempt, wait for a file.
GANG = """%%submarine --only
import os, pathlib, sys, time
index, attempt = os.environ['SUBMARINE_INDEX'], os.environ['SUBMARINE_ATTEMPT']
gpu = os.environ['CUDA_VISIBLE_DEVICES']
print(f'i am {{index}} at attempt {{attempt}} with GPU {{gpu}}', flush=True)
if (index, attempt) == ('1', '1'):
    time.sleep(1)
    sys.exit('once it fails')
while not pathlib.Path({flag!r}).exists():
    time.sleep(0.1)
print(f'{{index}} is done', flush=True)
"""
RUN = (
    "%submarine run gang --worker 3 --gpu 1 --memory 256M"
    " --framework any --policy all --heartbeat 200ms"
)
#: All that the node has: nothing is left while the gang holds its part.
WAITS = "%submarine run waits --gpu 4 --memory 256M"
#: Milliseconds; a cluster may be busy.
TIMEOUT = 120_000
#: The job's own state; the table has those of its tasks.
HEAD = ".jp-Submarine-head"

pytestmark = pytest.mark.cluster


def column(card: Locator, head: str) -> list[str]:
    """What the table of tasks has below a head, one text for each task."""
    table = card.get_by_role("group", name="Table of tasks").get_by_role("table")
    heads = [text.strip() for text in table.locator("thead th").all_inner_texts()]
    assert head in heads, heads
    rows = table.locator("tbody tr:not(.jp-Submarine-taskNote)")
    place = f":is(th, td):nth-child({heads.index(head) + 1})"
    return [text.strip() for text in rows.locator(place).all_inner_texts()]


def test_a_gang_with_gpus_from_its_start_over_a_fault_to_its_end(lab_page: LabPage) -> None:
    flag = lab_page.lab.scratch / "flag-gang"
    lab_page.open(lab_page.lab.write("gang.ipynb", GANG.format(flag=str(flag)), RUN, WAITS))
    # Open from here on: what it says of the cluster must not stay as it is now.
    lab_page.command("submarine:jobs")
    for index in (0, 1):
        lab_page.run_cell(index)
    try:
        goes_well(lab_page, flag)
    finally:
        # Whatever went wrong here, the next test finds the cluster's GPUs free.
        flag.touch()
        for row in lab_page.lab.api("jobs")["jobs"]:
            if row["backend"] == "yarn" and row["state"] in ("PENDING", "STARTING", "RUNNING"):
                cancel(lab_page, row["job_id"])


def goes_well(lab_page: LabPage, flag: Path) -> None:
    """The whole way."""
    card = lab_page.card(1)
    lab_page.wait_for(lambda: "1" in restarts(card), 120)
    lab_page.wait_for(lambda: column(card, "State") == ["RUNNING"] * 3, 60)
    assert column(card, "Task") == ["worker:0", "worker:1", "worker:2"]
    # How many each has; which ones of the node stand in the tooltip.
    assert column(card, "GPUs") == ["1"] * 3
    devices = card.locator("table [title]").evaluate_all("all => all.map(node => node.title)")
    assert len({title for title in devices if title in ("0", "1", "2", "3")}) == 3, devices
    containers = column(card, "Container")
    assert len(set(containers)) == 3, containers
    link = card.get_by_role("link", name=re.compile("YARN"))
    expect(link).to_have_attribute("href", re.compile(r"^http://.*application_\d+_\d+"))
    lab_page.run_cell(2)
    waits = lab_page.card(2)
    expect(waits.locator(HEAD)).to_contain_text("PENDING", timeout=TIMEOUT)
    expect(waits).to_contain_text(re.compile(r"GPU"), timeout=TIMEOUT)
    says_what_is_free(lab_page)
    card.scroll_into_view_if_needed()
    lab_page.shot("yarn-gang", card)
    lab_page.shot("yarn-waits", waits)
    gang, waiting = lab_page.job_ids()
    reads_its_logs(lab_page, gang)
    assert cancel(lab_page, waiting) == 202
    flag.touch()
    lab_page.page.locator(".lm-TabBar-tabLabel", has_text="gang.ipynb").click()
    expect(card.locator(HEAD)).to_contain_text("SUCCEEDED", timeout=TIMEOUT)
    lab_page.wait_for(lambda: column(card, "State") == ["SUCCEEDED"] * 3, 60)
    assert column(card, "Restarts")[1] == "1"
    card.scroll_into_view_if_needed()
    lab_page.shot("yarn-gang-succeeded", card)
    expect(waits.locator(HEAD)).to_contain_text("CANCELLED", timeout=TIMEOUT)
    assert lab_page.errors == []


def says_what_is_free(lab_page: LabPage) -> None:
    """Of four GPUs the gang has three, and the second job waits for all of them."""
    cluster = lab_page.page.locator(".jp-Submarine-jobs-queues")
    expect(cluster.locator("summary")).to_have_text("1 of 4 GPUs free")
    cluster.locator("summary").click()
    queue = cluster.get_by_role("row").filter(
        has=lab_page.page.get_by_role("rowheader", name="default")
    )
    free, _, waiting = queue.get_by_role("cell").all()
    # YARN may have reserved the one that is left for the second job.
    expect(free).to_have_text(re.compile("^[01] / 4$"))
    expect(waiting).to_have_text("1")
    lab_page.shot("yarn-panel")


def cancel(lab_page: LabPage, job: str) -> int:
    """End a job; the status of the answer."""
    return lab_page.lab.ask(f"{API}jobs/{job}/cancel", "POST", body={"why": "seen enough"}).status


def restarts(card: Locator) -> list[str]:
    """The restarts of each task; empty before the first."""
    try:
        return column(card, "Restarts")
    except AssertionError:
        return []


def reads_its_logs(lab_page: LabPage, job: str) -> None:
    """All tasks with their names, one of them, and its first attempt."""
    log = lab_page.open_log(job)
    for index, attempt in ((0, 1), (1, 2), (2, 1)):
        row = log.row(f"i am {index} at attempt {attempt}")
        expect(row).to_contain_text(f"worker:{index}", timeout=TIMEOUT)
    lab_page.shot("yarn-gang-log")
    log.node.get_by_role("combobox", name="Task").select_option("worker:1")
    expect(log.row("i am 0")).to_have_count(0)
    expect(log.row("i am 1 at attempt 2")).to_be_visible()
    log.node.get_by_role("combobox", name="Attempt").select_option("e1-a1")
    expect(log.row("i am 1 at attempt 1")).to_be_visible(timeout=TIMEOUT)
    expect(log.row("once it fails")).to_be_visible(timeout=TIMEOUT)
    expect(log.row("at attempt 2")).to_have_count(0)
