"""The text below ``%%submarine VERB``: pass it to the callback of a verb, and complete it.

Its meaning depends on the verb.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from submarine_jobs.commands.grammar.verb import Verb
from submarine_jobs.commands.grammar.verbs import grammar
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _, gettext_noop

_META = "submarine.cell_body"


@dataclass(frozen=True)
class CellBody:
    """The text below the first line of a cell, or of a paragraph of a note.

    Attributes
    ----------
    text
        All lines below that line.
    first_line
        The number that the editor shows for the first of these lines, usually 2.
    label
        Displayed label of the cell, ``[3]``.
    what
        The noun for messages: a cell, or a paragraph of a note.
    """

    text: str
    first_line: int = 2
    label: str = ""
    what: str = gettext_noop("Cell")

    @property
    def in_place(self) -> str:
        """The text after blank lines, so that its line numbers are those of the editor."""
        return "\n" * (self.first_line - 1) + self.text

    @property
    def cell(self) -> str:
        """``Cell [3]``, for sentences."""
        named = self.label.strip("[ ]")
        if named:
            return f"{_(self.what)} {self.label}"
        return _("This {what}").format(what=_(self.what).lower())

    @classmethod
    def of(cls, ctx: click.Context) -> CellBody:
        """Return the body that a verb of ``submarine.cells`` was called with.

        Raises
        ------
        UsageError
            If it was called without a body.
        """
        found = cls.given(ctx)
        if found is None:
            raise UsageError(
                _("{info_name} takes the lines below it, and there are none.").format(
                    info_name=ctx.info_name
                ),
                _("Type %%submarine {info_name} on the first line of a cell.").format(
                    info_name=ctx.info_name
                ),
            )
        return found

    @classmethod
    def given(cls, ctx: click.Context) -> CellBody | None:
        """Return the body that a verb was called with; None if there is none."""
        found = ctx.meta.get(_META)
        return found if isinstance(found, CellBody) else None

    def give_to(self, ctx: click.Context) -> None:
        """Let the verbs of this context find it."""
        ctx.meta[_META] = self


class CellVerb(Verb):
    """A verb of ``submarine.cells`` with completion and help for the text below its line."""

    def complete_text(self, before: str) -> list[str]:
        """Return completions of the last word of ``before``, the text up to the cursor."""
        return []

    def explain_text(self, before: str) -> str | None:
        """Return help on the last word of ``before``, or None."""
        return None


def complete_below(verb: str, before: str) -> list[str]:
    """Return completions of the last word of ``before``, a text below ``%%submarine VERB``."""
    found = _verb(verb)
    return found.complete_text(before) if found is not None else []


def explain_below(verb: str, before: str) -> str | None:
    """Return help on the last word of ``before``, a text below ``%%submarine VERB``."""
    found = _verb(verb)
    return found.explain_text(before) if found is not None else None


def _verb(name: str) -> CellVerb | None:
    verbs = grammar(in_cell=True)
    try:
        found = verbs.get_command(click.Context(verbs), name)
    except SubmarineError:  # a verb that cannot be loaded raises when it is run
        return None
    return found if isinstance(found, CellVerb) else None
