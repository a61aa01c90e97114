"""The text below ``%%submarine VERB``: where a verb's callback finds it, what Tab offers in it.

Does not know what the text means: a program is ``cells``'s, all else is the verb's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from submarine_jobs.commands.grammar.verb import Verb
from submarine_jobs.commands.grammar.verbs import grammar
from submarine_jobs.errors import SubmarineError, UsageError

_META = "submarine.cell_body"


@dataclass(frozen=True)
class CellBody:
    """What stands below the first line of a cell, or of a paragraph of a note.

    Attributes
    ----------
    text
        All lines below that line.
    first_line
        The number that the editor shows for the first of them, mostly 2.
    label
        What a person calls the cell, ``[3]``.
    what
        What it is, for sentences: a cell, or a paragraph of a note.
    """

    text: str
    first_line: int = 2
    label: str = ""
    what: str = "Cell"

    @property
    def in_place(self) -> str:
        """The text behind so many blank lines that its lines have the editor's numbers."""
        return "\n" * (self.first_line - 1) + self.text

    @property
    def cell(self) -> str:
        """``Cell [3]``, for sentences."""
        named = self.label.strip("[ ]")
        return f"{self.what} {self.label}" if named else f"This {self.what.lower()}"

    @classmethod
    def of(cls, ctx: click.Context) -> CellBody:
        """The text that a verb of ``submarine.cells`` was given.

        Raises
        ------
        UsageError
            If it was called without any.
        """
        found = ctx.meta.get(_META)
        if not isinstance(found, CellBody):
            raise UsageError(
                f"{ctx.info_name} takes the lines below it, and there are none.",
                f"Type %%submarine {ctx.info_name} on the first line of a cell.",
            )
        return found

    def give_to(self, ctx: click.Context) -> None:
        """Let the verbs of this context find it."""
        ctx.meta[_META] = self


class CellVerb(Verb):
    """A verb of ``submarine.cells`` that knows what may be typed below its line."""

    def complete_text(self, before: str) -> list[str]:
        """Words that may stand in the place of the last one of ``before``, the text so far."""
        return []

    def explain_text(self, before: str) -> str | None:
        """Help on the word that ``before`` ends with, or None."""
        return None


def complete_below(verb: str, before: str) -> list[str]:
    """What Tab offers at the end of ``before``, which stands below ``%%submarine VERB``."""
    found = _verb(verb)
    return found.complete_text(before) if found is not None else []


def explain_below(verb: str, before: str) -> str | None:
    """Help on the last word of ``before``, which stands below ``%%submarine VERB``."""
    found = _verb(verb)
    return found.explain_text(before) if found is not None else None


def _verb(name: str) -> CellVerb | None:
    verbs = grammar(in_cell=True)
    try:
        found = verbs.get_command(click.Context(verbs), name)
    except SubmarineError:  # what cannot be loaded says so when it is used
        return None
    return found if isinstance(found, CellVerb) else None
