"""Finds where the collected cells and the saved document differ. Reads neither from disk."""

from __future__ import annotations

from submarine_jobs.checks.findings import Finding, Level
from submarine_jobs.program import CellCollection, CellState, named_labels


def check_document(collection: CellCollection) -> list[Finding]:
    """Warnings for cells that raised when they ran, were edited, not saved or not run."""
    findings = [
        Finding(
            Level.WARNING,
            "cell-raised",
            f"Cell {cell.label} raised {raised} when it ran, and is part of the program.",
            cell.filename,
            cell=cell.label,
            cell_line=1,
            fix="Correct the cell and run it again.",
        )
        for cell, raised in collection.raised()
    ]
    if collection.document is None:
        return findings
    unsaved = []
    for row in collection.listing():
        label = row.cell.label
        if row.state is CellState.EDITED:
            findings.append(
                Finding(
                    Level.WARNING,
                    "cell-edited",
                    f"Cell {label} was edited after it ran; the job gets the text that ran.",
                    row.cell.filename,
                    cell=label,
                    cell_line=1,
                    fix="Run the cell again.",
                )
            )
        elif row.state is CellState.UNSAVED:
            unsaved.append(label)
    if unsaved:
        differ = "Cell {} differs" if len(unsaved) == 1 else "Cells {} differ"
        findings.append(
            Finding(
                Level.WARNING,
                "cell-unsaved",
                f"{differ.format(named_labels(unsaved))} "
                "from the saved notebook, so the order of cells and the snapshot may be old.",
                cell=unsaved[0],
                cell_line=1,
                fix="Save the notebook.",
            )
        )
    if not_run := [cell.label for cell in collection.not_run()]:
        findings.append(_not_run(not_run))
    return findings


def _not_run(labels: list[str]) -> Finding:
    """One finding for all: after a restart of the kernel they are many."""
    if len(labels) == 1:
        message = f"Cell {labels[0]} carries %%submarine but was not run, so the job lacks it."
        fix = "Run the cell, or remove %%submarine from it."
    else:
        message = (
            f"Cells {named_labels(labels)} carry %%submarine but were not run, "
            "so the job lacks them."
        )
        fix = "Run the cells, or remove %%submarine from them."
    return Finding(Level.WARNING, "cell-not-run", message, cell=labels[0], cell_line=1, fix=fix)
