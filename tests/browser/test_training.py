"""A training as its card shows it: its own scalars as charts, its model saved by a click."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.jobs import Jobs
from tests.browser.lab_page import LabPage

#: Speaks as Keras does, and writes a model that grows.
TRAINING = """
import os, pathlib, time
model = pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"])
for epoch in range(1, 9):
    print(f"Epoch {{epoch}}/8", flush=True)
    loss, accuracy = 1 / epoch, 1 - 0.5 / epoch
    print(f"100/100 - 1s - 5ms/step - accuracy: {{accuracy:.4f}} - loss: {{loss:.4f}}", flush=True)
    (model / "weights.bin").write_bytes(b"w" * 1000 * epoch)
    time.sleep(0.2)
print("trained", flush=True)
while not pathlib.Path({flag!r}).exists():
    time.sleep(0.1)
"""
TIMEOUT = 60_000

pytestmark = pytest.mark.timeout(300)


def test_scalars_are_charts_and_the_model_is_saved_by_a_click(
    lab_page: LabPage, jobs: Jobs
) -> None:
    flag = lab_page.lab.scratch / "flag-training"
    job = jobs.start(TRAINING.format(flag=str(flag)), "training")
    cell = new_code_cell("%submarine run training", outputs=[jobs.output(job)])
    lab_page.open(lab_page.lab.write("training.ipynb", cell))
    card = lab_page.card()
    charts = card.get_by_role("group", name="Measurements")
    for name in ("loss", "accuracy"):
        expect(charts.get_by_text(name).first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="Save model").click()
    models = card.get_by_role("group", name="Table of saved models").get_by_role("table")
    expect(models.get_by_role("rowheader")).to_have_text(["v1"], timeout=TIMEOUT)
    expect(models).to_contain_text("8.0 kB")
    card.scroll_into_view_if_needed()
    lab_page.shot("card-training", card)
    flag.touch()
    expect(card.locator(".jp-Submarine-head")).to_contain_text("SUCCEEDED", timeout=TIMEOUT)
    expect(models.get_by_role("rowheader").first).to_be_visible()
    expect(charts.get_by_text("loss").first).to_be_visible()
    lab_page.shot("card-trained", card)
    assert lab_page.errors == []


def test_notebook_7_leads_to_the_line_and_completes(lab_page: LabPage) -> None:
    cells = (
        "",
        "%%submarine --only\n\nprint(1 / 0)",
        "%submarine run seven-fails --backend local",
    )
    lab_page.open_notebook7(lab_page.lab.write("seven-fails.ipynb", *cells))
    lab_page.run_cell(1)
    lab_page.run_cell(2)
    card = lab_page.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="line 3").first.click()
    marked = lab_page.page.locator(".jp-Submarine-markedLine")
    expect(marked).to_contain_text("print(1 / 0)")
    lab_page.shot("notebook-7-failed")
    lab_page.page.locator(".jp-CodeCell .cm-content").first.click()
    lab_page.page.keyboard.type("%submarine sh")
    lab_page.page.keyboard.press("Tab")
    shown = lab_page.page.locator(".jp-Completer-item").first
    expect(shown.or_(lab_page.page.get_by_text("%submarine show").first).first).to_be_visible()
    card.get_by_role("button", name="Logs").click()
    expect(
        lab_page.page.locator(".jp-Submarine-log-row").filter(has_text="ZeroDivision")
    ).to_be_visible(timeout=TIMEOUT)
    lab_page.shot("notebook-7-log")
    # Notebook 7 has some of its own when it starts.
    assert [error for error in lab_page.errors if "jupyter-submarine" in error] == []
