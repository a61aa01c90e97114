"""``clear``: remove all cells from the collection; the notebook is not changed."""

from __future__ import annotations

import click

from submarine_jobs.commands.cells import collection_of
from submarine_jobs.commands.grammar import Verb
from submarine_jobs.frontends import Frontend, Outcome
from submarine_runtime.translation import ngettext


@click.command("clear", cls=Verb, example=("clear",))
@click.pass_obj
def clear(frontend: Frontend, /) -> Outcome:
    """Forget the collected cells; running one of them collects it again."""
    count = collection_of(frontend, "clear").clear()
    words = ngettext(
        "{count} cell is forgotten; the notebook is unchanged.",
        "{count} cells are forgotten; the notebook is unchanged.",
        count,
    )
    return Outcome(words.format(count=count), value={"forgotten": count})
