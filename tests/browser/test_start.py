"""The front end is there, a notebook runs a job, and its card is an output."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.desk import LabPage

PROGRAM = "%%submarine --only\nprint('hello from the job')"


def test_the_extension_is_loaded(desk: LabPage) -> None:
    desk.open(desk.lab.write("empty.ipynb", "1 + 1"))
    loaded = "() => Object.keys(window._JUPYTERLAB ?? {})"
    assert "jupyter-submarine" in desk.page.evaluate(loaded)
    assert desk.errors == []


def test_a_job_of_a_notebook_leaves_its_card(desk: LabPage) -> None:
    desk.open(desk.lab.write("hello.ipynb", PROGRAM, "%submarine run hello --backend local --wait"))
    desk.run_all()
    (job,) = desk.job_ids()
    assert job.startswith("hello-")
    expect(desk.outputs().get_by_text("SUCCEEDED").first).to_be_visible()
    desk.shot("hello")
