"""``clear``: remove all cells from the collection; the notebook is not changed."""

from __future__ import annotations

import click

from submarine_jobs.commands.cells import collection_of
from submarine_jobs.commands.grammar import Verb
from submarine_jobs.frontends import Frontend, Outcome


@click.command("clear", cls=Verb, example=("clear",))
@click.pass_obj
def clear(frontend: Frontend, /) -> Outcome:
    """Forget the collected cells; running one of them collects it again."""
    count = collection_of(frontend, "clear").clear()
    words = "1 cell is" if count == 1 else f"{count} cells are"
    return Outcome(f"{words} forgotten; the notebook is unchanged.", value={"forgotten": count})
