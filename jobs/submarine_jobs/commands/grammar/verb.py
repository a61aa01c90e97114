"""The base class of verbs: click commands with grouped options, examples and ``--json``.

The callback of a verb receives a ``Frontend`` and the options, and returns an ``Outcome``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Outcome
from submarine_runtime.translation import _, gettext_noop

Callback = TypeVar("Callback", bound=Callable[..., Any])
#: Key in the ``meta`` of the context: whether ``--json`` was given.
AS_JSON = "submarine.as_json"
#: Key of the words as they were typed; click normalizes options.
TYPED = "submarine.typed"
#: Heading of the options without another one.
OPTIONS = gettext_noop("Options")
CONTEXT = {"max_content_width": 100, "help_option_names": ["--help", "-h"]}


class HelpRequested(Exception):  # noqa: N818 - leaves click's parser
    """Contains the help text, which click would print."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def with_prefix(text: str, command: str) -> str:
    """Replace ``submarine`` in a help text by ``command``, such as ``%submarine``."""
    return re.sub(r"(?m)^(Usage: |  )submarine(?= )", lambda found: found[1] + command, text)


class TranslatedHelp:
    """Translate the ``help`` of a command or option when it is read."""

    _source: str | None = None

    @property
    def help(self) -> str | None:
        """The help text in the language of the process."""
        return _(inspect.cleandoc(self._source)) if self._source else self._source

    @help.setter
    def help(self, text: str | None) -> None:
        self._source = text


class GroupedOption(TranslatedHelp, click.Option):
    """An option with a heading in the help, and aliases.

    An option with ``in_help=False`` is omitted in the help, but completed.
    """

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        heading: str = OPTIONS,
        aliases: Sequence[str] = (),
        in_help: bool = True,
        **attrs: Any,
    ) -> None:
        self.heading = heading
        self.in_help = in_help
        self.aliases = tuple(aliases)
        super().__init__([*declarations, *aliases], **attrs)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """See ``click.Option``: the main spellings only; aliases follow the text."""
        record = super().get_help_record(ctx)
        if record is None or not self.in_help:
            return None
        # Both spellings are accepted; one is shown.
        names, text = record
        hidden = {normal(alias) for alias in self.aliases}
        shown = [part for part in names.split(", ") if normal(part.split(" ")[0]) not in hidden]
        metavar = "" if self.is_flag else f" {self.make_metavar(ctx)}"
        plain = ", ".join(part.split(" ")[0] for part in shown)
        also = (
            _(" (also {aliases})").format(aliases=", ".join(self.aliases)) if self.aliases else ""
        )
        return plain + metavar, text + also


def normal(word: str) -> str:
    """Return one spelling for ``num_workers`` and ``num-workers``."""
    return word.replace("_", "-")


class Verb(TranslatedHelp, click.Command):
    """One verb.

    Parameters
    ----------
    example
        Lines shown under ``Examples``, without the leading ``submarine``.
    extra
        Extra of the wheel that the verb needs; empty: that of its group, or none.
    """

    def __init__(
        self, *args: Any, example: Sequence[str] = (), extra: str = "", **attrs: Any
    ) -> None:
        self.example = tuple(example)
        self.extra = extra
        settings = {**CONTEXT, "token_normalize_func": normal}
        attrs.setdefault("context_settings", settings)
        super().__init__(*args, **attrs)
        self.params.append(
            GroupedOption(["--json", "as_json"], is_flag=True, help="Give the result as JSON.")
        )

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return a ``--help`` option that raises the text instead of printing it."""
        return help_option(self.get_help_option_names(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings in order of declaration, plain ones last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "heading", OPTIONS), []).append(record)
        if plain := sections.pop(OPTIONS, None):
            sections[OPTIONS] = plain
        for heading, records in sections.items():
            with formatter.section(_(heading)):
                formatter.write_dl(records, col_max=34)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one on each line."""
        if self.example:
            with formatter.section(_("Examples")):
                for line in self.example:
                    start = "" if line.startswith(" ") else "submarine "
                    formatter.write(f"{' ' * formatter.current_indent}{start}{line}\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``; set the context of usage errors."""
        ctx.meta[TYPED] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Outcome:
        """Run the callback, and handle ``--json``."""
        as_json = bool(ctx.params.pop("as_json", False))
        ctx.meta[AS_JSON] = as_json
        if extra := self.extra or getattr(ctx.parent and ctx.parent.command, "extra", ""):
            # cost: a module that most verbs do not need.
            from submarine_jobs.extras import require_extra

            require_extra(extra)
        outcome = super().invoke(ctx)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"{self.name} returned {type(outcome).__name__}, not an Outcome")
        return replace(outcome, as_json=as_json or outcome.as_json)


def help_option(names: Sequence[str]) -> click.Option:
    """Return the ``--help`` option of groups and verbs."""

    def show(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            raise HelpRequested(ctx.get_help())

    return GroupedOption(
        list(names),
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show this text.",
    )


def option(*declarations: str, **attrs: Any) -> Callable[[Callback], Callback]:
    """Return ``click.option`` for grouped options, with ``heading`` and ``aliases``."""
    return click.option(*declarations, cls=GroupedOption, **attrs)


class ParsedType(click.ParamType[Any]):
    """A parameter type that calls a parsing function.

    Parameters
    ----------
    prefix
        Begin errors with the name of the option; False if the function does so.
    choices
        Values for completion.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        *,
        prefix: bool = True,
        choices: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._parse = parse
        self._prefix = prefix
        self._choices = tuple(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value; raise UsageError with the option's name in the sentence."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UsageError as exc:
            if not self._prefix or param is None:
                raise
            raise UsageError(f"{param.opts[0]}: {exc.message}", exc.fix) from exc

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the choices that begin with ``incomplete``."""
        # cost: click.shell_completion, which only a completion needs.
        from click.shell_completion import CompletionItem

        return [CompletionItem(item) for item in self._choices if item.startswith(incomplete)]
