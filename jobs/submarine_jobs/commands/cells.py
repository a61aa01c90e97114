"""``cells``: list the collected cells in the order of the program, with the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from submarine_jobs.commands.grammar import Verb
from submarine_jobs.display import columns
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.program import join_labels
from submarine_jobs.text import escape_html, one_line
from submarine_runtime.translation import _, gettext_noop, ngettext

if TYPE_CHECKING:
    from submarine_jobs.program import CellCollection, ListedCell

_COLUMNS = (
    gettext_noop("CELL"),
    gettext_noop("FILE"),
    gettext_noop("LINES"),
    gettext_noop("STATE"),
    gettext_noop("FIRST LINE"),
)
_LIMITS = (12, 40, 8, 24, 60)


def collection_of(frontend: Frontend, verb: str) -> CellCollection:
    """Return the collected cells of the front end.

    Raises
    ------
    UsageError
        If the front end has no cells, as on a command line.
    """
    if frontend.collection is None:
        raise UsageError(
            _("{verb} is about the cells of a notebook, and there is none here.").format(verb=verb),
            _(
                "Type %submarine {verb} in a notebook; `submarine run FILE.ipynb` runs a saved one."
            ).format(verb=verb),
        )
    return frontend.collection


@click.command("cells", cls=Verb, example=("cells",))
@click.pass_obj
def cells(frontend: Frontend, /) -> Outcome:
    """Show which cells are collected, in what order, and what changed since they ran."""
    collection = collection_of(frontend, "cells")
    listing = collection.listing()
    not_run = [cell.label for cell in collection.not_run()]
    missing = _missing(not_run)
    if not listing:
        text = _("No cell is collected. Put %%submarine on the first line of a cell and run it.")
        return Outcome("\n".join([text, *missing]), value={"cells": [], "not_run": len(not_run)})
    rows = [_row(item) for item in listing]
    return Outcome(
        text="\n".join([columns.text(_COLUMNS, rows), *missing]),
        html=columns.html(_COLUMNS, rows)
        + "".join(f"<p>{escape_html(text, 2000)}</p>" for text in missing),
        value={"cells": [_plain(item) for item in listing], "not_run": len(not_run)},
    )


def _missing(labels: list[str]) -> list[str]:
    """Return at most one line, on marked cells that did not run."""
    if not labels:
        return []
    words = ngettext(
        "Cell {cells} has %%submarine and has not run yet, so it is not part of the program.",
        "Cells {cells} have %%submarine and have not run yet, so they are not part of the program.",
        len(labels),
    )
    return [words.format(cells=join_labels(labels))]


def _row(item: ListedCell) -> tuple[str, ...]:
    cell = item.cell
    fields = (cell.label, cell.filename, str(item.lines), item.state.value, item.first_code)
    return tuple(one_line(text, limit) for text, limit in zip(fields, _LIMITS, strict=True))


def _plain(item: ListedCell) -> dict[str, object]:
    cell = item.cell
    return {
        "cell": cell.label,
        "cell_id": cell.cell_id,
        "file": cell.filename,
        "lines": item.lines,
        "state": item.state.value,
        "only": cell.only,
        "source": cell.source,
    }
