"""Return the help on a word of a command line, for inspectors and ``?``.

No command runs. Words that are not in the grammar have no help.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from submarine_jobs.commands.grammar import grammar, normal, with_prefix
from submarine_runtime.translation import _


def explain_word(
    words: Sequence[str], command: str = "submarine", *, in_cell: bool = False
) -> str | None:
    """Return help on the last word: on its option, else on its verb, else on all verbs.

    Parameters
    ----------
    words
        The words after ``submarine``, up to and including the word to explain.
    command
        The prefix of a verb in the help: ``submarine`` or ``%submarine``.
    in_cell
        Whether the words belong to ``%%submarine VERB``.
    """
    name = "%%submarine" if in_cell else "submarine"
    with click.Context(grammar(in_cell=in_cell), info_name=name) as ctx:
        rest = list(words)
        while rest and isinstance(ctx.command, click.Group):
            try:
                found = ctx.command.get_command(ctx, rest[0])
            except Exception:  # a plug-in that cannot be loaded raises when it is run
                found = None
            if found is None:
                break
            ctx = click.Context(found, parent=ctx, info_name=rest.pop(0))
        if rest and isinstance(ctx.command, click.Group) and not rest[-1].startswith("-"):
            return None
        option = None if "--" in rest else _option(ctx, rest)
        if option is not None:
            return _help_on(option, ctx, command)
        if rest and rest[-1].startswith("-") and "--" not in rest:
            return None
        return ctx.get_help() if in_cell else with_prefix(ctx.get_help(), command)


def _option(ctx: click.Context, words: Sequence[str]) -> click.Option | None:
    """Return the option that the last word names or is a value of."""
    if not words:
        return None
    found = _named(ctx, words[-1])
    if found is None and len(words) > 1 and not words[-1].startswith("-"):
        option = _named(ctx, words[-2])
        has_value = option is not None and not option.is_flag and "=" not in words[-2]
        found = option if has_value else None
    return found


def _named(ctx: click.Context, word: str) -> click.Option | None:
    name = normal(word.partition("=")[0])
    if not name.startswith("-"):
        return None
    for param in ctx.command.get_params(ctx):
        spellings = (*param.opts, *param.secondary_opts)
        if isinstance(param, click.Option) and name in map(normal, spellings):
            return param
    return None


def _help_on(option: click.Option, ctx: click.Context, command: str) -> str:
    names, text = option.get_help_record(ctx) or (", ".join(option.opts), option.help or "")
    path = command + ctx.command_path.removeprefix("%%").removeprefix("submarine")
    lines = [names, f"    {text}"]
    if isinstance(option.type, click.Choice) and str(option.type.choices[0]) not in text:
        lines.append(
            "    "
            + _("One of {choices}.").format(
                choices=", ".join(str(choice) for choice in option.type.choices)
            )
        )
    if option.multiple:
        lines.append("    " + _("May be given several times."))
    return "\n".join(
        [*lines, "", _("An option of {path}; `{path} --help` shows all.").format(path=path)]
    )
