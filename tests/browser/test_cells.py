"""Cells in JupyterLab: collected by their tag, found again from a job, completed as one types."""

from __future__ import annotations

import json

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.desk import LabPage

TIMEOUT = 90_000


def tagged(source: str, *tags: str, name: str) -> NotebookNode:
    return new_code_cell(source, id=name, metadata={"tags": list(tags)})


def test_a_tagged_cell_is_marked_and_collected_with_no_magic_in_it(desk: LabPage) -> None:
    path = desk.lab.write(
        "tagged.ipynb",
        tagged("x = 3", "submarine", name="first"),
        tagged("def f(): return 1", "submarine:model.py", name="second"),
        tagged("y = 4", "other", name="third"),
        "%submarine cells --json",
    )
    desk.open(path)
    marks = desk.page.locator(".jp-Submarine-collected")
    expect(marks).to_have_count(2)
    expect(marks.first).to_have_attribute("aria-description", "Collected into main.py when it runs")
    label = "node => getComputedStyle(node, '::after').content"
    inputs = marks.locator("> .jp-Cell-inputWrapper")
    assert [node.evaluate(label) for node in inputs.all()] == ['"main.py"', '"model.py"']
    desk.run_all()
    expect(desk.outputs()).to_contain_text("model.py")
    shown = json.loads(desk.outputs().inner_text())["cells"]
    assert [(cell["cell_id"], cell["file"]) for cell in shown] == [
        ("first", "main.py"),
        ("second", "model.py"),
    ]
    # The palette's command gives the tag and takes it; what a cell holds stays plain Python.
    for count in (3, 2):
        desk.page.evaluate(
            "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }"
        )
        desk.command("submarine:toggle-tag")
        expect(marks).to_have_count(count)
    desk.shot("cells-tagged")
    assert desk.errors == []


def test_the_line_of_a_failure_leads_to_its_cell(desk: LabPage) -> None:
    path = desk.lab.write(
        "leads.ipynb",
        *["# nothing" + "\n" * 20] * 5,
        tagged("def scale(x):\n    return 1 / x", "submarine", name="there"),
        *["# nothing" + "\n" * 20] * 5,
        tagged(
            "import os\nif 'SUBMARINE_JOB_ID' in os.environ:\n    scale(0)", "submarine", name="b"
        ),
        "%submarine run fails --backend local",
    )
    desk.open(path)
    desk.run_all()
    card = desk.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="line 2").first.click()
    marked = desk.page.locator(".jp-Submarine-markedLine")
    expect(marked).to_have_count(1)
    expect(marked).to_have_text("    return 1 / x")
    expect(marked).to_be_in_viewport()
    desk.shot("cells-marked-line")
    assert desk.errors == []


def test_a_closed_notebook_is_opened_and_the_cell_found_by_its_id(desk: LabPage) -> None:
    desk.lab.write("closed.ipynb", *["1"] * 40, tagged("a = 1\nb = 2", name="deep"))
    desk.open(desk.lab.write("open.ipynb", "2"))
    desk.command("submarine:reveal-cell", notebook="closed.ipynb", cell="deep", line=2)
    marked = desk.page.locator(".jp-Submarine-markedLine")
    expect(marked).to_have_text("b = 2")
    expect(marked).to_be_in_viewport()
    said = desk.page.evaluate(
        """() => window.jupyterapp.commands
          .execute('submarine:reveal-cell', { notebook: 'closed.ipynb', cell: 'gone' })
          .then(() => '', problem => problem.message)"""
    )
    assert said == "The cell is no longer in closed.ipynb."


def test_cancel_asks_first(desk: LabPage) -> None:
    cells = (
        "%%submarine --only\nimport time\ntime.sleep(600)",
        "%submarine run long --backend local",
    )
    desk.open(desk.lab.write("long.ipynb", *cells))
    desk.run_all()
    card = desk.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="Cancel").click()
    dialog = desk.page.locator(".jp-Dialog")
    desk.shot("commands-cancel")
    dialog.get_by_role("button", name="Keep running", exact=True).click()
    expect(card.get_by_text("RUNNING").first).to_be_visible()
    card.get_by_role("button", name="Cancel").click()
    dialog.get_by_role("button", name="Cancel job", exact=True).click()
    expect(card.get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)


def completions(desk: LabPage, text: str) -> list[str]:
    """What Tab offers behind ``text`` in the first cell."""
    page = desk.page
    page.evaluate(
        """() => {
          const notebook = window.jupyterapp.shell.currentWidget.content;
          notebook.activeCellIndex = 0;
          notebook.activeCell.model.sharedModel.setSource('');
          notebook.mode = 'edit';
        }"""
    )
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .cm-content").first.click()
    page.keyboard.type(text)
    page.keyboard.press("Tab")
    expect(page.locator(".jp-Completer-item").first).to_be_visible()
    found = page.locator(".jp-Completer-match").all_inner_texts()
    page.keyboard.press("Escape")
    return [word.strip() for word in found]


def test_words_are_completed_also_while_the_kernel_is_busy(desk: LabPage) -> None:
    desk.open(desk.lab.write("tab.ipynb", "", "import time\ntime.sleep(600)"))
    idle = completions(desk, "%submarine s")
    assert {"show", "save", "script"} <= set(idle)
    assert len(idle) == len(set(idle))
    desk.page.evaluate(
        """() => {
          const panel = window.jupyterapp.shell.currentWidget;
          panel.content.activeCellIndex = 1;
          void window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    desk.wait_for(
        lambda: (
            desk.page.evaluate(
                "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
            )
            == "busy"
        )
    )
    assert "show" in completions(desk, "%submarine sh")
    assert "--queue" in completions(desk, "%submarine run x --que")
    desk.shut_down_kernel()
