"""The front end is there, a notebook runs a job, and its card is an output."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.lab_page import LabPage

PROGRAM = "%%submarine --only\nprint('hello from the job')"


def test_the_extension_is_loaded(lab_page: LabPage) -> None:
    lab_page.open(lab_page.lab.write("empty.ipynb", "1 + 1"))
    loaded = "() => Object.keys(window._JUPYTERLAB ?? {})"
    assert "jupyter-submarine" in lab_page.page.evaluate(loaded)
    assert lab_page.errors == []


def test_a_job_of_a_notebook_leaves_its_card(lab_page: LabPage) -> None:
    lab_page.open(
        lab_page.lab.write("hello.ipynb", PROGRAM, "%submarine run hello --backend local --wait")
    )
    lab_page.run_all()
    (job,) = lab_page.job_ids()
    assert job.startswith("hello-")
    expect(lab_page.outputs().get_by_text("SUCCEEDED").first).to_be_visible()
    lab_page.shot("hello")
