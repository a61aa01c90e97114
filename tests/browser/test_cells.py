"""Cells in JupyterLab: collected by their tag, found again from a job, completed as one types."""

from __future__ import annotations

import json

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from tests.browser.lab_page import LabPage

TIMEOUT = 90_000


def tagged(source: str, *tags: str, name: str) -> NotebookNode:
    return new_code_cell(source, id=name, metadata={"tags": list(tags)})


def test_a_tagged_cell_is_marked_and_collected_with_no_magic_in_it(lab_page: LabPage) -> None:
    path = lab_page.lab.write(
        "tagged.ipynb",
        tagged("x = 3", "submarine", name="first"),
        tagged("def f(): return 1", "submarine:model.py", name="second"),
        tagged("y = 4", "other", name="third"),
        "%submarine cells --json",
    )
    lab_page.open(path)
    marks = lab_page.page.locator(".jp-Submarine-collected")
    expect(marks).to_have_count(2)
    expect(marks.first).to_have_attribute("aria-description", "Collected into main.py when it runs")
    label = "node => getComputedStyle(node, '::after').content"
    inputs = marks.locator("> .jp-Cell-inputWrapper")
    assert [node.evaluate(label) for node in inputs.all()] == ['"main.py"', '"model.py"']
    lab_page.run_all()
    expect(lab_page.outputs()).to_contain_text("model.py")
    shown = json.loads(lab_page.outputs().inner_text())["cells"]
    assert [(cell["cell_id"], cell["file"]) for cell in shown] == [
        ("first", "main.py"),
        ("second", "model.py"),
    ]
    # The palette's command gives the tag and takes it; what a cell holds stays plain Python.
    for count in (3, 2):
        lab_page.page.evaluate(
            "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }"
        )
        lab_page.command("submarine:toggle-tag")
        expect(marks).to_have_count(count)
    lab_page.shot("cells-tagged")
    assert lab_page.errors == []


def test_the_line_of_a_failure_leads_to_its_cell(lab_page: LabPage) -> None:
    path = lab_page.lab.write(
        "leads.ipynb",
        *["# nothing" + "\n" * 20] * 5,
        tagged("def scale(x):\n    return 1 / x", "submarine", name="there"),
        *["# nothing" + "\n" * 20] * 5,
        tagged(
            "import os\nif 'SUBMARINE_JOB_ID' in os.environ:\n    scale(0)", "submarine", name="b"
        ),
        "%submarine run fails --backend local",
    )
    lab_page.open(path)
    lab_page.run_all()
    card = lab_page.card()
    expect(card.get_by_text("FAILED").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="line 2").first.click()
    marked = lab_page.page.locator(".jp-Submarine-markedLine")
    expect(marked).to_have_count(1)
    expect(marked).to_have_text("    return 1 / x")
    expect(marked).to_be_in_viewport()
    lab_page.shot("cells-marked-line")
    assert lab_page.errors == []


def test_a_closed_notebook_is_opened_and_the_cell_found_by_its_id(lab_page: LabPage) -> None:
    lab_page.lab.write("closed.ipynb", *["1"] * 40, tagged("a = 1\nb = 2", name="deep"))
    lab_page.open(lab_page.lab.write("open.ipynb", "2"))
    lab_page.command("submarine:reveal-cell", notebook="closed.ipynb", cell="deep", line=2)
    marked = lab_page.page.locator(".jp-Submarine-markedLine")
    expect(marked).to_have_text("b = 2")
    expect(marked).to_be_in_viewport()
    said = lab_page.page.evaluate(
        """() => window.jupyterapp.commands
          .execute('submarine:reveal-cell', { notebook: 'closed.ipynb', cell: 'gone' })
          .then(() => '', problem => problem.message)"""
    )
    assert said == "The cell is no longer in closed.ipynb."


def test_cancel_asks_first(lab_page: LabPage) -> None:
    cells = (
        "%%submarine --only\nimport time\ntime.sleep(600)",
        "%submarine run long --backend local",
    )
    lab_page.open(lab_page.lab.write("long.ipynb", *cells))
    lab_page.run_all()
    card = lab_page.card()
    expect(card.get_by_text("RUNNING").first).to_be_visible(timeout=TIMEOUT)
    card.get_by_role("button", name="Cancel").click()
    dialog = lab_page.page.locator(".jp-Dialog")
    lab_page.shot("commands-cancel")
    dialog.get_by_role("button", name="Keep running", exact=True).click()
    expect(card.get_by_text("RUNNING").first).to_be_visible()
    card.get_by_role("button", name="Cancel").click()
    dialog.get_by_role("button", name="Cancel job", exact=True).click()
    expect(card.get_by_text("CANCELLED").first).to_be_visible(timeout=TIMEOUT)


def completions(lab_page: LabPage, text: str) -> list[str]:
    """What Tab offers behind ``text`` in the first cell."""
    page = lab_page.page
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


def test_words_are_completed_also_while_the_kernel_is_busy(lab_page: LabPage) -> None:
    lab_page.open(lab_page.lab.write("tab.ipynb", "", "import time\ntime.sleep(600)"))
    idle = completions(lab_page, "%submarine s")
    assert {"show", "save", "script"} <= set(idle)
    assert len(idle) == len(set(idle))
    lab_page.page.evaluate(
        """() => {
          const panel = window.jupyterapp.shell.currentWidget;
          panel.content.activeCellIndex = 1;
          void window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    lab_page.wait_for(
        lambda: (
            lab_page.page.evaluate(
                "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
            )
            == "busy"
        )
    )
    assert "show" in completions(lab_page, "%submarine sh")
    assert "--queue" in completions(lab_page, "%submarine run x --que")
    lab_page.shut_down_kernel()
