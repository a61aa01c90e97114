"""The card: live while the job runs, after a reload too; honest where the job is out of reach."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.jobs import Jobs
from tests.browser.lab_page import LabPage

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


def test_a_card_lives_and_ends_with_its_job(lab_page: LabPage) -> None:
    flag = lab_page.lab.scratch / "flag"
    cells = (WAITING.format(flag=str(flag)), "%submarine run waits --backend local")
    lab_page.open(lab_page.lab.write("waits.ipynb", *cells))
    lab_page.run_all()
    card = lab_page.card()
    expect(card).to_have_count(1)
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    (job,) = lab_page.job_ids()
    expect(card.get_by_text(job).first).to_be_visible()
    for button in ("Logs", "Save model", "Cancel", "Copy as command"):
        expect(card.get_by_role("button", name=button)).to_be_visible()
    expect(card.get_by_role("list", name="Phases")).to_contain_text("queue")
    lab_page.shot("card-running", card)
    # From here on only the server can know: the kernel that made the card is gone.
    lab_page.shut_down_kernel()
    flag.touch()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_role("button", name="Rerun")).to_be_visible()
    expect(card.get_by_role("button", name="Cancel")).to_have_count(0)
    lab_page.shot("card-succeeded", card)
    assert lab_page.errors == []


def test_a_card_comes_back_live_after_a_reload(lab_page: LabPage, jobs: Jobs) -> None:
    flag = lab_page.lab.scratch / "flag-reload"
    job = jobs.start(WAITING.partition("\n")[2].format(flag=str(flag)), "reloaded")
    cell = new_code_cell("%submarine run reloaded", outputs=[jobs.output(job)])
    lab_page.open(lab_page.lab.write("reload.ipynb", cell))
    expect(lab_page.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    lab_page.reload()
    expect(lab_page.card().get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    flag.touch()
    expect(lab_page.card().get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    # The kernel never ran: what the notebook has stored is the snapshot that it began with.
    assert lab_page.job_ids() == [job]


def test_a_copy_of_a_notebook_shows_the_job_as_it_is_now(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "copied")
    jobs.wait(job, lambda state: state.value == "RUNNING")
    cell = new_code_cell("%submarine run copied", outputs=[jobs.output(job)])
    original = lab_page.lab.write("original.ipynb", cell)
    copy = original.with_name("copy.ipynb")
    copy.write_bytes(original.read_bytes())
    jobs.session.job(job).cancel("the test says so")
    lab_page.open(copy)
    expect(lab_page.card().get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)


def test_a_job_out_of_reach_shows_its_snapshot_and_says_so(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('far away')", "faraway")
    elsewhere = f"faraway-20200102-{job[-4:]}"
    output = jobs.output(job, job_id=elsewhere, job_dir="hdfs://nowhere.invalid:1/jobs/x")
    output["data"]["application/vnd.submarine.job.v1+json"]["record"]["job_id"] = elsewhere
    lab_page.open(lab_page.lab.write("faraway.ipynb", new_code_cell("1", outputs=[output])))
    card = lab_page.card()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_text(re.compile("snapshot", re.I)).first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_role("button", name="Rerun")).to_have_count(0)
    lab_page.shot("card-out-of-reach", card)


def test_a_failed_line_leads_to_its_cell_and_marks_it(lab_page: LabPage) -> None:
    filler = [f"print('{n}\\n' * 30)" for n in range(4)]
    cells = (FAILING, CALLER, *filler, "%submarine run fails --backend local")
    lab_page.open(lab_page.lab.write("fails.ipynb", *cells))
    lab_page.run_all()
    card = lab_page.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    expect(card.get_by_text("ZeroDivisionError").first).to_be_visible()
    card.scroll_into_view_if_needed()
    lab_page.shot("card-failed", card)
    link = card.get_by_role("button", name=re.compile(r"Cell \[1\], line 4"))
    link.click()
    cell = lab_page.page.locator(".jp-CodeCell").first
    marked = cell.locator(".jp-Submarine-markedLine")
    expect(marked).to_contain_text("return 1 / x")
    expect(marked).to_be_in_viewport()
    lab_page.shot("failed-line-marked")


def test_cancel_asks_and_cancels(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "unwanted")
    cell = new_code_cell("%submarine run unwanted", outputs=[jobs.output(job)])
    lab_page.open(lab_page.lab.write("cancel.ipynb", cell))
    card = lab_page.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="Cancel").click()
    dialog = lab_page.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    lab_page.shot("cancel-asks")
    dialog.get_by_role("button", name="Keep running", exact=True).click()
    expect(dialog).to_have_count(0)
    assert not jobs.session.job(job).record().state.ended
    card.get_by_role("button", name="Cancel").click()
    dialog.locator(".jp-mod-accept").click()
    expect(card.get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)
    assert jobs.session.job(job).record().state.value == "CANCELLED"


def test_facts_stay_in_two_columns_in_a_narrow_output(
    new_lab_page: Callable[..., LabPage], jobs: Jobs
) -> None:
    name = "validation_accuracy_of_the_last_epoch"
    job = jobs.finished("print('narrow')", "narrow")
    lab_page = new_lab_page(viewport={"width": 900, "height": 900})
    cell = new_code_cell("%submarine run narrow", outputs=[jobs.output(job, result={name: "0.93"})])
    lab_page.open(lab_page.lab.write("narrow.ipynb", cell))
    card = lab_page.card()
    expect(card.get_by_text(f"Returned {name}")).to_be_visible(timeout=TIMEOUT)
    card.get_by_text("Details").click()
    lab_page.shot("card-facts-narrow", card)
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


def test_rerun_and_copy_as_command(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.finished("print('again')", "again")
    cell = new_code_cell("%submarine run again", outputs=[jobs.output(job)])
    lab_page.open(lab_page.lab.write("again.ipynb", cell))
    card = lab_page.card()
    lab_page.page.evaluate(
        """() => window.addEventListener('copy', event => {
          window.copied = event.clipboardData.getData('text/plain');
        })"""
    )
    card.get_by_role("button", name="Copy as command").click()
    lab_page.page.wait_for_function("() => window.copied?.startsWith('submarine run')")
    before = {record.job_id for record in jobs.session.jobs()}
    card.get_by_role("button", name="Rerun").click()
    lab_page.wait_for(lambda: {record.job_id for record in jobs.session.jobs()} - before)


@pytest.mark.cluster
def test_a_job_on_yarn_shows_its_container_gpu_and_page(lab_page: LabPage) -> None:
    flag = lab_page.lab.scratch / "flag-yarned"
    cells = (
        WAITING.format(flag=str(flag)),
        "%submarine run yarned --gpu 1 --memory 512M",
    )
    lab_page.open(lab_page.lab.write("yarned.ipynb", *cells))
    lab_page.run_all()
    card = lab_page.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    tasks = card.get_by_role("table")
    expect(tasks).to_contain_text("worker:0", timeout=TIMEOUT)
    expect(tasks.locator("[title*='container_']").first).to_be_visible(timeout=TIMEOUT)
    link = card.get_by_role("link", name=re.compile("YARN"))
    expect(link).to_have_attribute("href", re.compile(r"^http://.*application_\d+_\d+"))
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    lab_page.shot("card-yarn-running", card)
    flag.touch()
    expect(card.get_by_text("SUCCEEDED").first).to_be_visible(timeout=2 * TIMEOUT)
    lab_page.shot("card-yarn-succeeded", card)
