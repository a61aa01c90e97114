"""The kernel *Python + Submarine* in JupyterLab: chosen, restarted, asked for help; a tag alone."""

from __future__ import annotations

import json

from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.desk import LabPage

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


def test_it_is_a_choice_of_the_launcher(desk: LabPage) -> None:
    desk.open_lab()
    desk.command("launcher:create")
    card = desk.page.locator('.jp-LauncherCard[title^="Python + Submarine"]').first
    expect(card).to_be_visible()
    assert desk.errors == []


def test_a_cell_tagged_only_is_collected_and_does_not_run_also_after_a_restart(
    desk: LabPage,
) -> None:
    tags = {"tags": ["submarine-only:model.py"]}
    path = desk.lab.write(
        "only.ipynb",
        new_code_cell("seen = 'it ran'", id="only", metadata=tags),
        "print(globals().get('seen', 'it did not run'))",
        "%submarine cells --json",
    )
    desk.open(path)
    for _ in range(2):
        desk.run_all()
        expect(desk.outputs(0)).to_contain_text("is now part of model.py")
        expect(desk.outputs(1)).to_have_text("it did not run")
        cells = json.loads(desk.outputs().inner_text())["cells"]
        assert [(cell["cell_id"], cell["file"]) for cell in cells] == [("only", "model.py")]
        desk.settle(_RESTART)
    desk.shut_down_kernel()


def test_the_inspector_shows_the_help_of_an_option(desk: LabPage) -> None:
    desk.open(desk.lab.write("help.ipynb", "%submarine run digits --gpu"))
    desk.page.evaluate(_CURSOR_AT_END)
    desk.command("tooltip:launch-notebook")
    tooltip = desk.page.locator(".jp-Tooltip")
    expect(tooltip).to_contain_text("--gpu N")
    expect(tooltip).to_contain_text("An option of %submarine run")
    desk.shut_down_kernel()
