"""Groups of verbs, such as ``workflow`` and ``kernel``, with one line of help for each verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from submarine_jobs.commands.grammar.verb import CONTEXT, TranslatedHelp, help_option
from submarine_runtime.translation import _

#: Section -> verb -> its line of help.
Sections = Mapping[str, Mapping[str, str]]


class VerbGroup(TranslatedHelp, click.Group):
    """A group whose help lists its verbs by section.

    Parameters
    ----------
    extra
        Extra of the wheel that all verbs of the group need; empty: none. Their help needs none.
    """

    def __init__(self, *args: Any, sections: Sections, extra: str = "", **attrs: Any) -> None:
        self.sections = sections
        self.extra = extra
        attrs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **attrs)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return a ``--help`` option that raises the text instead of printing it."""
        return help_option(self.get_help_option_names(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See ``click.Group``."""
        for section, verbs in self.sections.items():
            with formatter.section(_(section)):
                formatter.write_dl([(verb, _(text)) for verb, text in verbs.items()])


def verb_group(sections: Sections, *, extra: str = "") -> Callable[[Callable[..., Any]], VerbGroup]:
    """Return a decorator like ``click.group`` for a ``VerbGroup``."""

    def decorate(function: Callable[..., Any]) -> VerbGroup:
        return click.group(cls=VerbGroup, sections=sections, extra=extra)(function)

    return decorate
