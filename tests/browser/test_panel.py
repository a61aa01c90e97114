"""The jobs panel, the palette, TensorBoard as a tab."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from submarine_jobs.display import summary
from tests.browser.desk import LabPage
from tests.browser.jobs import Jobs

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


def test_the_panel_finds_jobs_by_words_and_state(desk: LabPage, jobs: Jobs) -> None:
    jobs.finished("print(1)", "panel-good")
    jobs.finished("1 / 0", "panel-bad")
    running = jobs.start("import time\nprint('x', flush=True)\ntime.sleep(300)", "panel-runs")
    jobs.wait(running, lambda state: state.value == "RUNNING")
    desk.open_lab()
    desk.command("submarine:jobs")
    panel = desk.page.get_by_role("listbox", name="Jobs")
    options = panel.get_by_role("option")
    expect(options.filter(has_text="panel-runs")).to_be_visible()
    # Running first, then the newest.
    expect(options.first).to_contain_text("RUNNING")
    desk.shot("panel")
    field = desk.page.get_by_label("Search jobs")
    field.fill("panel-")
    expect(options).to_have_count(3)
    states = desk.page.get_by_role("combobox", name="States")
    states.select_option(label="Failed or lost")
    expect(options).to_have_count(1)
    expect(options.first).to_contain_text("panel-bad")
    field.fill("no job has this name")
    expect(options).to_have_count(0)
    jobs.session.job(running).cancel("seen enough")


def test_the_panel_opens_the_job_and_its_menu_leads_to_the_cell(desk: LabPage) -> None:
    filler = [f"print('{n}\\n' * 30)" for n in range(4)]
    cells = ("%%submarine --only\n1 / 0", "%submarine run keyed --backend local", *filler)
    desk.open(desk.lab.write("keyed.ipynb", *cells))
    desk.run_all()
    (job,) = desk.job_ids()
    desk.save()
    # The cell has nothing of the job any more.
    desk.command("notebook:clear-all-cell-outputs")
    desk.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 5; }"
    )
    desk.command("submarine:jobs")
    desk.page.get_by_label("Search jobs").fill("keyed")
    panel = desk.page.get_by_role("listbox", name="Jobs")
    expect(panel.get_by_role("option")).to_have_count(1)
    panel.get_by_role("option").click()
    card = desk.page.locator(".jp-Submarine-cardTab").get_by_role("group", name="Job keyed")
    expect(card).to_have_attribute("data-job", job)
    expect(card.get_by_text("ZeroDivisionError").first).to_be_visible()
    desk.shot("panel-opens-the-job")
    desk.command("application:close")
    panel.focus()
    desk.page.keyboard.press("Enter")
    expect(card).to_have_attribute("data-job", job)
    panel.focus()
    desk.page.keyboard.press("Shift+F10")
    menu = desk.page.locator(".jp-Submarine-jobsMenu")
    expect(menu).to_be_visible()
    desk.page.keyboard.press("Escape")
    expect(panel).to_be_focused()
    desk.page.keyboard.press("Shift+F10")
    expect(menu).to_be_visible()
    desk.page.keyboard.press("s")
    desk.page.keyboard.press("Enter")
    desk.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex === 1"
    )
    expect(desk.page.locator(".jp-CodeCell").nth(1)).to_be_in_viewport()


def test_the_palette_has_the_commands(desk: LabPage) -> None:
    desk.open_lab()
    # As a person does it: a command that is run from outside leaves the focus, and so closes it.
    desk.page.locator(".jp-Launcher").first.click(position={"x": 3, "y": 3})
    desk.page.keyboard.press("Control+Shift+C")
    palette = desk.page.locator(".jp-ModalCommandPalette")
    expect(palette.locator(".lm-CommandPalette-input")).to_be_focused()
    desk.page.keyboard.type("submarine", delay=30)
    labels = palette.locator(".lm-CommandPalette-itemLabel")
    for words in ("Show My Jobs", "Show Logs of Job", "TensorBoard of Job", "Cancel Job"):
        expect(labels.filter(has_text=words).first).to_be_visible()
    desk.shot("palette")


#: The durations that the panel and a card show of one job, read at one moment.
_DURATIONS = """name => {
  const rows = [...document.querySelectorAll('.jp-Submarine-jobs-row')];
  const row = rows.find(one => one.textContent.includes(name));
  return [
    row?.querySelector('.jp-Submarine-jobs-time')?.textContent,
    document.querySelector('.jp-Submarine-times > span')?.textContent
  ];
}"""


def test_panel_card_and_commands_show_one_duration(desk: LabPage, jobs: Jobs) -> None:
    ended = jobs.finished("import time\ntime.sleep(1)", "took-ended")
    running = jobs.start("import time\ntime.sleep(300)", "took-runs")
    jobs.wait(running, lambda state: state.value == "RUNNING")
    desk.open_lab()
    desk.command("submarine:jobs")
    desk.command("submarine:show", job=ended)
    desk.wait_for(lambda: None not in desk.page.evaluate(_DURATIONS, "took-ended"), 60)
    words = summary.format_elapsed(jobs.session.job(ended).view())
    assert desk.page.evaluate(_DURATIONS, "took-ended") == [words, words]
    desk.command("application:close")
    desk.command("submarine:show", job=running)
    expect(desk.page.locator(".jp-Submarine-times")).to_be_visible()
    seen = set()
    for _ in range(30):
        in_panel, in_card = desk.page.evaluate(_DURATIONS, "took-runs")
        assert in_panel == in_card
        seen.add(in_card)
        desk.page.wait_for_timeout(100)
    assert len(seen) >= 3  # it ticks
    jobs.session.job(running).cancel("seen enough")


def test_the_palette_cancels_a_kernel_after_a_warning(desk: LabPage, jobs: Jobs) -> None:
    sleeps = "import time\nprint('x', flush=True)\ntime.sleep(300)"
    kernel = jobs.start(sleeps, "kernel-far", role="kernel")
    jobs.wait(kernel, lambda state: state.value == "RUNNING")
    desk.open_lab()
    desk.page.locator(".jp-Launcher").first.click(position={"x": 3, "y": 3})
    desk.page.keyboard.press("Control+Shift+C")
    palette = desk.page.locator(".jp-ModalCommandPalette")
    expect(palette.locator(".lm-CommandPalette-input")).to_be_focused()
    desk.page.keyboard.type("submarine cancel job", delay=30)
    palette.locator(".lm-CommandPalette-itemLabel", has_text="Cancel Job…").first.click()
    dialog = desk.page.locator(".jp-Dialog")
    # No button says "Cancel" or "Ok", which could mean the job as well as the question.
    expect(dialog.get_by_role("button")).to_have_text(["Close", "Cancel Job"])
    desk.shot("cancel-choice")
    dialog.locator("select").select_option(label=f"{kernel}  RUNNING")
    dialog.get_by_role("button", name="Cancel Job").click()
    expect(dialog).to_contain_text("all variables of the notebook or console that uses it are lost")
    expect(dialog.get_by_role("button")).to_have_text(["Keep running", "Cancel job"])
    desk.shot("cancel-kernel")
    # Enter keeps the job.
    desk.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert not jobs.session.job(kernel).record().state.ended
    jobs.session.job(kernel).cancel("seen enough")


def test_tensorboard_opens_as_a_tab(desk: LabPage, jobs: Jobs) -> None:
    job = jobs.finished(WRITER, "board")
    desk.open_lab()
    desk.command("submarine:tensorboard", jobs=[job])
    frame = desk.page.frame_locator(f"iframe[src*='submarine/tensorboard/{job}']")
    expect(frame.get_by_text(re.compile("TensorBoard")).first).to_be_visible(timeout=60_000)
    expect(frame.get_by_text("loss").first).to_be_visible(timeout=60_000)
    desk.shot("tensorboard")


def test_a_notebook_without_jobs_loads_nothing_of_ours_but_the_entry(desk: LabPage) -> None:
    sockets: list[str] = []
    desk.page.on("websocket", lambda socket: sockets.append(socket.url))
    desk.open(desk.lab.write("plain.ipynb", "1 + 1"))
    desk.run_all()
    assert not [url for url in sockets if "submarine" in url]
    assert desk.page.locator("[class*=jp-Submarine]:visible").count() == 0


pytestmark = pytest.mark.timeout(300)
