"""The card: live while the job runs, after a reload too; honest where the job is out of reach."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.desk import LabPage
from tests.browser.jobs import Jobs

WAITING = """%%submarine --only
import pathlib, time
print('up', flush=True)
while not pathlib.Path({flag!r}).exists():
    time.sleep(0.1)
print('done', flush=True)
"""
FAILING = "%%submarine --only --file model.py\n\ndef scale(x):\n    return 1 / x\n"
CALLER = "%%submarine --only\nfrom model import scale\n\nprint(scale(0))"
TIMEOUT = 90_000


def test_a_card_lives_and_ends_with_its_job(desk: LabPage) -> None:
    flag = desk.lab.scratch / "flag"
    cells = (WAITING.format(flag=str(flag)), "%submarine run waits --backend local")
    desk.open(desk.lab.write("waits.ipynb", *cells))
    desk.run_all()
    card = desk.card()
    expect(card).to_have_count(1)
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    (job,) = desk.job_ids()
    expect(card.get_by_text(job).first).to_be_visible()
    for button in ("Logs", "Save model", "Cancel", "Copy as command"):
        expect(card.get_by_role("button", name=button)).to_be_visible()
    expect(card.get_by_role("list", name="Phases")).to_contain_text("queue")
    desk.shot("card-running", card)
    # From here on only the server can know: the kernel that made the card is gone.
    desk.shut_down_kernel()
    flag.touch()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_role("button", name="Rerun")).to_be_visible()
    expect(card.get_by_role("button", name="Cancel")).to_have_count(0)
    desk.shot("card-succeeded", card)
    assert desk.errors == []


def test_a_card_comes_back_live_after_a_reload(desk: LabPage, jobs: Jobs) -> None:
    flag = desk.lab.scratch / "flag-reload"
    job = jobs.start(WAITING.partition("\n")[2].format(flag=str(flag)), "reloaded")
    cell = new_code_cell("%submarine run reloaded", outputs=[jobs.output(job)])
    desk.open(desk.lab.write("reload.ipynb", cell))
    expect(desk.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    desk.reload()
    expect(desk.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    flag.touch()
    expect(desk.card().get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    # The kernel never ran: what the notebook has stored is the snapshot that it began with.
    assert desk.job_ids() == [job]


def test_a_copy_of_a_notebook_shows_the_job_as_it_is_now(desk: LabPage, jobs: Jobs) -> None:
    job = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "copied")
    jobs.wait(job, lambda state: state.value == "RUNNING")
    cell = new_code_cell("%submarine run copied", outputs=[jobs.output(job)])
    original = desk.lab.write("original.ipynb", cell)
    copy = original.with_name("copy.ipynb")
    copy.write_bytes(original.read_bytes())
    jobs.session.job(job).cancel("the test says so")
    desk.open(copy)
    expect(desk.card().get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)


def test_a_job_out_of_reach_shows_its_snapshot_and_says_so(desk: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('far away')", "faraway")
    elsewhere = f"faraway-20200102-{job[-4:]}"
    output = jobs.output(job, job_id=elsewhere, job_dir="hdfs://nowhere.invalid:1/jobs/x")
    output["data"]["application/vnd.submarine.job.v1+json"]["record"]["job_id"] = elsewhere
    desk.open(desk.lab.write("faraway.ipynb", new_code_cell("1", outputs=[output])))
    card = desk.card()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_text(re.compile("snapshot", re.I)).first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_role("button", name="Rerun")).to_have_count(0)
    desk.shot("card-out-of-reach", card)


def test_a_failed_line_leads_to_its_cell_and_marks_it(desk: LabPage) -> None:
    filler = [f"print('{n}\\n' * 30)" for n in range(4)]
    cells = (FAILING, CALLER, *filler, "%submarine run fails --backend local")
    desk.open(desk.lab.write("fails.ipynb", *cells))
    desk.run_all()
    card = desk.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_text("ZeroDivisionError").first).to_be_visible()
    card.scroll_into_view_if_needed()
    desk.shot("card-failed", card)
    link = card.get_by_role("button", name=re.compile(r"Cell \[1\], line 4"))
    link.click()
    cell = desk.page.locator(".jp-CodeCell").first
    marked = cell.locator(".jp-Submarine-markedLine")
    expect(marked).to_contain_text("return 1 / x")
    expect(marked).to_be_in_viewport()
    desk.shot("failed-line-marked")


def test_cancel_asks_and_cancels(desk: LabPage, jobs: Jobs) -> None:
    job = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "unwanted")
    cell = new_code_cell("%submarine run unwanted", outputs=[jobs.output(job)])
    desk.open(desk.lab.write("cancel.ipynb", cell))
    card = desk.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="Cancel").click()
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    desk.shot("cancel-asks")
    dialog.get_by_role("button", name="Keep running", exact=True).click()
    expect(dialog).to_have_count(0)
    assert not jobs.session.job(job).record().state.ended
    card.get_by_role("button", name="Cancel").click()
    dialog.locator(".jp-mod-accept").click()
    expect(card.get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)
    assert jobs.session.job(job).record().state.value == "CANCELLED"


def test_facts_stay_in_two_columns_in_a_narrow_output(
    new_desk: Callable[..., LabPage], jobs: Jobs
) -> None:
    name = "validation_accuracy_of_the_last_epoch"
    job = jobs.finished("print('narrow')", "narrow")
    desk = new_desk(viewport={"width": 900, "height": 900})
    cell = new_code_cell("%submarine run narrow", outputs=[jobs.output(job, result={name: "0.93"})])
    desk.open(desk.lab.write("narrow.ipynb", cell))
    card = desk.card()
    expect(card.get_by_text(f"Returned {name}")).to_be_visible(timeout=TIMEOUT)
    card.get_by_text("Details").click()
    desk.shot("card-facts-narrow", card)
    boxes = card.evaluate(
        """card => [...card.querySelectorAll('dl')].map(list =>
          [...list.children].map(node => {
            const { left, right, top, bottom } = node.getBoundingClientRect();
            const cut = node.scrollWidth > node.clientWidth;
            return { left, right, top, bottom, cut, edge: list.getBoundingClientRect().right };
          }))"""
    )
    assert len(boxes) == 2
    for nodes in boxes:
        terms, texts = nodes[::2], nodes[1::2]
        assert len({term["left"] for term in terms}) == len({text["left"] for text in texts}) == 1
        for term, text in zip(terms, texts, strict=True):
            assert term["top"] == text["top"]
            assert term["right"] <= text["left"]
            assert text["right"] <= text["edge"] + 1
            assert not term["cut"]


def test_rerun_and_copy_as_command(desk: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('again')", "again")
    cell = new_code_cell("%submarine run again", outputs=[jobs.output(job)])
    desk.open(desk.lab.write("again.ipynb", cell))
    card = desk.card()
    desk.page.evaluate(
        """() => window.addEventListener('copy', event => {
          window.copied = event.clipboardData.getData('text/plain');
        })"""
    )
    card.get_by_role("button", name="Copy as command").click()
    desk.page.wait_for_function("() => window.copied?.startsWith('submarine run')")
    before = {record.job_id for record in jobs.session.jobs()}
    card.get_by_role("button", name="Rerun").click()
    desk.wait_for(lambda: {record.job_id for record in jobs.session.jobs()} - before)


@pytest.mark.cluster
def test_a_job_on_yarn_shows_its_container_gpu_and_page(desk: LabPage) -> None:
    flag = desk.lab.scratch / "flag-yarned"
    cells = (
        WAITING.format(flag=str(flag)),
        "%submarine run yarned --gpu 1 --memory 512M",
    )
    desk.open(desk.lab.write("yarned.ipynb", *cells))
    desk.run_all()
    card = desk.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    tasks = card.get_by_role("table")
    expect(tasks).to_contain_text("worker:0", timeout=TIMEOUT)
    expect(tasks.locator("[title*='container_']").first).to_be_visible(timeout=TIMEOUT)
    link = card.get_by_role("link", name=re.compile("YARN"))
    expect(link).to_have_attribute("href", re.compile(r"^http://.*application_\d+_\d+"))
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    desk.shot("card-yarn-running", card)
    flag.touch()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=2 * TIMEOUT)
    desk.shot("card-yarn-succeeded", card)
