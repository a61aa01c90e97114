"""The jobs panel, the palette, TensorBoard as a tab."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from submarine_jobs.display import summary
from tests.browser.jobs import Jobs
from tests.browser.lab_page import LabPage

WRITER = """
import os, sys, time, types
sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["SUBMARINE_TENSORBOARD_DIR"] + "/train")
for step in range(20):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
writer.close()
"""


def test_the_panel_finds_jobs_by_words_and_state(lab_page: LabPage, jobs: Jobs) -> None:
    jobs.finished("print(1)", "panel-good")
    jobs.finished("1 / 0", "panel-bad")
    running = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "panel-runs")
    jobs.wait(running, lambda state: state.value == "RUNNING")
    lab_page.open_lab()
    lab_page.command("submarine:jobs")
    panel = lab_page.page.get_by_role("listbox", name="Jobs")
    options = panel.get_by_role("option")
    expect(options.filter(has_text="panel-runs")).to_be_visible()
    # Running first, then the newest.
    expect(options.first).to_contain_text("RUNNING")
    lab_page.shot("panel")
    field = lab_page.page.get_by_label("Search jobs")
    field.fill("panel-")
    expect(options).to_have_count(3)
    states = lab_page.page.get_by_role("combobox", name="States")
    states.select_option(label="Failed or lost")
    expect(options).to_have_count(1)
    expect(options.first).to_contain_text("panel-bad")
    field.fill("no job has this name")
    expect(options).to_have_count(0)
    jobs.session.job(running).cancel("seen enough")


def test_the_panel_opens_the_job_and_its_menu_leads_to_the_cell(lab_page: LabPage) -> None:
    filler = [f"print('{n}\\n' * 30)" for n in range(4)]
    cells = ("%%submarine --only\n1 / 0", "%submarine run keyed --backend local", *filler)
    lab_page.open(lab_page.lab.write("keyed.ipynb", *cells))
    lab_page.run_all()
    (job,) = lab_page.job_ids()
    lab_page.save()
    # The cell has nothing of the job any more.
    lab_page.command("notebook:clear-all-cell-outputs")
    lab_page.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 5; }"
    )
    lab_page.command("submarine:jobs")
    lab_page.page.get_by_label("Search jobs").fill("keyed")
    panel = lab_page.page.get_by_role("listbox", name="Jobs")
    expect(panel.get_by_role("option")).to_have_count(1)
    panel.get_by_role("option").click()
    card = lab_page.page.locator(".jp-Submarine-cardTab").get_by_role("group", name="Job keyed")
    expect(card).to_have_attribute("data-job", job)
    expect(card.get_by_text("ZeroDivisionError").first).to_be_visible()
    lab_page.shot("panel-opens-the-job")
    lab_page.command("application:close")
    panel.focus()
    lab_page.page.keyboard.press("Enter")
    expect(card).to_have_attribute("data-job", job)
    panel.focus()
    lab_page.page.keyboard.press("Shift+F10")
    menu = lab_page.page.locator(".jp-Submarine-jobsMenu")
    expect(menu).to_be_visible()
    lab_page.page.keyboard.press("Escape")
    expect(panel).to_be_focused()
    lab_page.page.keyboard.press("Shift+F10")
    expect(menu).to_be_visible()
    lab_page.page.keyboard.press("s")
    lab_page.page.keyboard.press("Enter")
    lab_page.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex === 1"
    )
    expect(lab_page.page.locator(".jp-CodeCell").nth(1)).to_be_in_viewport()


def test_the_palette_has_the_commands(lab_page: LabPage) -> None:
    lab_page.open_lab()
    # As a person does it: a command that is run from outside leaves the focus, and so closes it.
    lab_page.page.locator(".jp-Launcher").first.click(position={"x": 3, "y": 3})
    lab_page.page.keyboard.press("Control+Shift+C")
    palette = lab_page.page.locator(".jp-ModalCommandPalette")
    expect(palette.locator(".lm-CommandPalette-input")).to_be_focused()
    lab_page.page.keyboard.type("submarine", delay=30)
    labels = palette.locator(".lm-CommandPalette-itemLabel")
    for words in ("Show My Jobs", "Show Logs of Job", "TensorBoard of Job", "Cancel Job"):
        expect(labels.filter(has_text=words).first).to_be_visible()
    lab_page.shot("palette")


#: The durations that the panel and a card show of one job, read at one moment.
_DURATIONS = """name => {
  const rows = [...document.querySelectorAll('.jp-Submarine-jobs-row')];
  const row = rows.find(one => one.textContent.includes(name));
  return [
    row?.querySelector('.jp-Submarine-jobs-time')?.textContent,
    document.querySelector('.jp-Submarine-times > span')?.textContent
  ];
}"""


def test_panel_card_and_commands_show_one_duration(lab_page: LabPage, jobs: Jobs) -> None:
    ended = jobs.finished("import time\ntime.sleep(1)", "took-ended")
    running = jobs.start("import time\ntime.sleep(300)", "took-runs")
    jobs.wait(running, lambda state: state.value == "RUNNING")
    lab_page.open_lab()
    lab_page.command("submarine:jobs")
    lab_page.command("submarine:show", job=ended)
    lab_page.wait_for(lambda: None not in lab_page.page.evaluate(_DURATIONS, "took-ended"), 60)
    words = summary.format_elapsed(jobs.session.job(ended).view())
    assert lab_page.page.evaluate(_DURATIONS, "took-ended") == [words, words]
    lab_page.command("application:close")
    lab_page.command("submarine:show", job=running)
    expect(lab_page.page.locator(".jp-Submarine-times")).to_be_visible()
    seen = set()
    for _ in range(30):
        in_panel, in_card = lab_page.page.evaluate(_DURATIONS, "took-runs")
        assert in_panel == in_card
        seen.add(in_card)
        lab_page.page.wait_for_timeout(100)
    assert len(seen) >= 3  # it ticks
    jobs.session.job(running).cancel("seen enough")


def test_the_palette_cancels_a_kernel_after_a_warning(lab_page: LabPage, jobs: Jobs) -> None:
    sleeps = "import time\nprint('x', flush=True)\ntime.sleep(300)"
    kernel = jobs.start(sleeps, "kernel-far", role="kernel")
    jobs.wait(kernel, lambda state: state.value == "RUNNING")
    lab_page.open_lab()
    lab_page.page.locator(".jp-Launcher").first.click(position={"x": 3, "y": 3})
    lab_page.page.keyboard.press("Control+Shift+C")
    palette = lab_page.page.locator(".jp-ModalCommandPalette")
    expect(palette.locator(".lm-CommandPalette-input")).to_be_focused()
    lab_page.page.keyboard.type("submarine cancel job", delay=30)
    palette.locator(".lm-CommandPalette-itemLabel", has_text="Cancel Job…").first.click()
    dialog = lab_page.page.locator(".jp-Dialog")
    # No button says "Cancel" or "Ok", which could mean the job as well as the question.
    expect(dialog.get_by_role("button")).to_have_text(["Close", "Cancel Job"])
    lab_page.shot("cancel-choice")
    dialog.locator("select").select_option(label=f"{kernel}  RUNNING")
    dialog.get_by_role("button", name="Cancel Job").click()
    expect(dialog).to_contain_text("all variables of the notebook or console that uses it are lost")
    expect(dialog.get_by_role("button")).to_have_text(["Keep running", "Cancel job"])
    lab_page.shot("cancel-kernel")
    # Enter keeps the job.
    lab_page.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert not jobs.session.job(kernel).record().state.ended
    jobs.session.job(kernel).cancel("seen enough")


def test_tensorboard_opens_as_a_tab(lab_page: LabPage, jobs: Jobs) -> None:
    job = jobs.finished(WRITER, "board")
    lab_page.open_lab()
    lab_page.command("submarine:tensorboard", jobs=[job])
    frame = lab_page.page.frame_locator(f"iframe[src*='submarine/tensorboard/{job}']")
    expect(frame.get_by_text(re.compile("TensorBoard")).first).to_be_visible(timeout=60_000)
    expect(frame.get_by_text("loss").first).to_be_visible(timeout=60_000)
    lab_page.shot("tensorboard")


def test_a_notebook_without_jobs_loads_nothing_of_ours_but_the_entry(lab_page: LabPage) -> None:
    sockets: list[str] = []
    lab_page.page.on("websocket", lambda socket: sockets.append(socket.url))
    lab_page.open(lab_page.lab.write("plain.ipynb", "1 + 1"))
    lab_page.run_all()
    assert not [url for url in sockets if "submarine" in url]
    assert lab_page.page.locator("[class*=jp-Submarine]:visible").count() == 0


pytestmark = pytest.mark.timeout(300)
