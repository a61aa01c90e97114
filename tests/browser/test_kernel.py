"""The kernel *Python + Submarine* in JupyterLab: chosen, restarted, asked for help; a tag alone."""

from __future__ import annotations

import json

import pytest
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.lab_page import LabPage

_RESTART = """async () => {
  const { sessionContext } = window.jupyterapp.shell.currentWidget;
  await sessionContext.session.kernel.restart();
  await sessionContext.session.kernel.info;
}"""
_CURSOR_AT_END = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = 0;
  notebook.mode = 'edit';
  const { editor } = notebook.activeCell;
  editor.focus();
  editor.setCursorPosition({ line: 0, column: editor.getLine(0).length });
}"""


def test_it_is_a_choice_of_the_launcher(lab_page: LabPage) -> None:
    lab_page.open_lab()
    lab_page.command("launcher:create")
    card = lab_page.page.locator('.jp-LauncherCard[title^="Python + Submarine"]').first
    expect(card).to_be_visible()
    assert lab_page.errors == []


@pytest.mark.full
def test_a_cell_tagged_only_is_collected_and_does_not_run_also_after_a_restart(
    lab_page: LabPage,
) -> None:
    tags = {"tags": ["submarine-only:model.py"]}
    path = lab_page.lab.write(
        "only.ipynb",
        new_code_cell("seen = 'it ran'", id="only", metadata=tags),
        "print(globals().get('seen', 'it did not run'))",
        "%submarine cells --json",
    )
    lab_page.open(path)
    for _ in range(2):
        lab_page.run_all()
        expect(lab_page.outputs(0)).to_contain_text("is now part of model.py")
        expect(lab_page.outputs(1)).to_have_text("it did not run")
        cells = json.loads(lab_page.outputs().inner_text())["cells"]
        assert [(cell["cell_id"], cell["file"]) for cell in cells] == [("only", "model.py")]
        lab_page.settle(_RESTART)
    lab_page.shut_down_kernel()


def test_the_inspector_shows_the_help_of_an_option(lab_page: LabPage) -> None:
    lab_page.open(lab_page.lab.write("help.ipynb", "%submarine run digits --gpu"))
    lab_page.page.evaluate(_CURSOR_AT_END)
    lab_page.command("tooltip:launch-notebook")
    tooltip = lab_page.page.locator(".jp-Tooltip")
    expect(tooltip).to_contain_text("--gpu N")
    expect(tooltip).to_contain_text("An option of %submarine run")
    lab_page.shut_down_kernel()
