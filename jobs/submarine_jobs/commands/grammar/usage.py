"""Convert the errors of click to one sentence each, with a suggestion.

The class of the error determines the exit code (``submarine_jobs.errors``).
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence

import click

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.options import normalize_option, unsupported_option
from submarine_runtime.translation import _

_UNKNOWN = re.compile(r"No such command '(.*?)'", re.DOTALL)
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)$", re.DOTALL)
_SEVERAL = re.compile(r"requires (\d+) arguments")
#: The verbs with the options of a job.
_RUN = ("run", "job run")
#: Verbs of other tools -> the corresponding verb, for suggestions.
_SYNONYMS = {
    **dict.fromkeys(("kill", "stop", "abort", "delete", "rm"), "cancel"),
    **dict.fromkeys(("ls", "ps", "jobs"), "list"),
    **dict.fromkeys(("status", "info", "describe", "get"), "show"),
    **dict.fromkeys(("submit", "start", "exec"), "run"),
    **dict.fromkeys(("fetch", "download"), "models"),
    **dict.fromkeys(("restart", "resume", "retry"), "rerun"),
}


def convert_error(error: click.ClickException) -> SubmarineError:
    """Convert an exception of click to an error with one sentence."""
    if not isinstance(error, click.UsageError):
        return SubmarineError(error.format_message())
    path = error.ctx.command_path if error.ctx else ""
    command = path.removeprefix("%%").removeprefix("submarine ") or "submarine"
    if isinstance(error, click.NoSuchOption):
        refused = no_such_option(_as_typed(error), command, _known_options(error.ctx))
        if command in _RUN and error.ctx is not None and not unsupported_option(error.option_name):
            close = refused.fix if "did you mean" in refused.fix else ""
            message = f"{refused.message} {close}" if close else f"{refused.message.rstrip(';')}."
            return UsageError(message, _after_separator(error.ctx))
        return refused
    if isinstance(error, click.BadOptionUsage):
        return _bad_option(error, command)
    if isinstance(error, click.MissingParameter):
        what = _named(error.param)
        if what == "JOB":
            return UsageError(
                _("{command} needs JOB: an id, its beginning, a name, or last.").format(
                    command=command
                )
            )
        return UsageError(
            _("{command} needs {what}.").format(command=command, what=what),
            _("See `submarine {command} --help`.").format(command=command),
        )
    if isinstance(error, click.BadParameter):
        return _bad_value(error, command)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return UsageError(
            _("{command} needs a command; it has {commands}.").format(
                command=command, commands=", ".join(_commands(error.ctx))
            )
        )
    message = error.format_message().split("\n")[0].rstrip(".")
    if unknown := _UNKNOWN.match(message):
        return _no_such_subcommand(unknown[1], command, error.ctx)
    if extra := _EXTRA.match(message):
        hint = _("See `submarine {command} --help`.").format(command=command)
        if command in _RUN and error.ctx is not None:
            hint = _after_separator(error.ctx)
        return UsageError(
            _("{command} does not take {extra} there.").format(
                command=command, extra=printable(extra[1])
            ),
            hint,
        )
    return UsageError(
        f"{command}: {message}.", _("See `submarine {command} --help`.").format(command=command)
    )


def _named(param: click.Parameter | None) -> str:
    """Return the name of an option or argument: ``--to``, ``FILE``; without click's ``...``."""
    if param is None:
        return "something"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name.rstrip(".")


def local_error(error: Exception) -> SubmarineError:
    """Convert an error of a file or of the index of jobs on this machine."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        what = error.strerror or str(error)
        return SubmarineError(
            _("This machine's files cannot be used: {error}.").format(
                error=printable(f"{where}{what}", 300)
            ),
            _("Check rights and free space; state_dir names where Submarine keeps its own."),
        )
    return SubmarineError(
        _("The index of jobs cannot be used: {error}.").format(error=printable(str(error), 200)),
        _(
            "Check rights and free space of state_dir; the index may be removed, `list` makes "
            "it anew."
        ),
    )


def no_such_option(option: str, command: str, known: Sequence[str]) -> UsageError:
    """Return the error for an unknown or unsupported option, with a similar option if any."""
    shown = printable(option)
    if command in _RUN and (absent := unsupported_option(option)):
        return UsageError(*absent)
    # An unknown option of `run` is more often one of the program than a spelling error.
    near = 0.75 if command in _RUN else 0.6
    close = difflib.get_close_matches(
        normalize_option(option), [normalize_option(name) for name in known], 1, near
    )
    by_spelling = {normalize_option(name): name for name in known}
    help_of = command if command == "submarine" else f"submarine {command}"
    hint = (
        _("did you mean {suggestion}?").format(suggestion=by_spelling[close[0]])
        if close
        else _("`{help_of} --help` lists them.").format(help_of=help_of)
    )
    return UsageError(
        _("No such option {shown} of {command};").format(shown=shown, command=command), hint
    )


def no_such_verb(name: str, known: Sequence[str]) -> UsageError:
    """Return the error for an unknown verb, with its synonym or the most similar verb."""
    meant = _SYNONYMS.get(name.lower())
    close = [meant] if meant in known else difflib.get_close_matches(name, known, 1, 0.6)
    hint = (
        _("did you mean {suggestion}?").format(suggestion=close[0])
        if close
        else _("`submarine --help` lists them.")
    )
    return UsageError(_("No such command {name};").format(name=printable(name)), hint)


def _no_such_subcommand(name: str, command: str, ctx: click.Context | None) -> UsageError:
    """Return the error for an unknown verb of a plug-in's group."""
    known = _commands(ctx)
    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = (
        _("did you mean {suggestion}?").format(suggestion=close[0])
        if close
        else _("it has {known}.").format(known=", ".join(known))
    )
    return UsageError(
        _("{command} has no command {name};").format(command=command, name=printable(name)), hint
    )


def _after_separator(ctx: click.Context) -> str:
    """Return a hint: the command line of ``run`` with the program's arguments after ``--``."""
    options = {
        normalize_option(name): param
        for param in ctx.command.get_params(ctx)
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }
    kept, moved = [], []
    words = [str(word) for word in ctx.meta.get("submarine.typed", ())]
    target = False
    while words:
        word = words.pop(0)
        name, equals, _value = word.partition("=")
        option = options.get(normalize_option(name))
        if option is not None:
            values = 0 if option.is_flag or equals else option.nargs
            kept += [word, *words[:values]]
            del words[:values]
        elif word.startswith("-"):
            moved.append(word)
            while not equals and words and not words[0].startswith("-"):
                if not target and words[0].endswith((".py", ".ipynb")):
                    break
                moved.append(words.pop(0))
        elif not target:
            target = True
            kept.append(word)
        else:
            moved.append(word)
    moved += ctx.meta.get("program_args", ())
    line = shlex.join(["submarine", *_words(ctx), *kept, "--", *moved])
    return _("Arguments of the program stand after --: `{line}`.").format(line=printable(line, 500))


def _words(ctx: click.Context) -> list[str]:
    """Return the words of the verb: ``run``, or ``job run``."""
    return ctx.command_path.split()[1:] or ["run"]


def _commands(ctx: click.Context | None) -> list[str]:
    """Return the verbs of a group."""
    group = ctx.command if ctx is not None else None
    return group.list_commands(ctx) if ctx and isinstance(group, click.Group) else []


def printable(text: str, limit: int = 60) -> str:
    """Return ``text`` without control characters, cut to ``limit`` characters."""
    plain = "".join(char if char.isprintable() else "?" for char in text[:limit])
    return plain + ("…" if len(text) > limit else "")


def _as_typed(error: click.NoSuchOption | click.BadOptionUsage) -> str:
    """Return the option as it was typed, possibly with ``_`` for ``-``."""
    words = error.ctx.meta.get("submarine.typed", ()) if error.ctx else ()
    names = (str(word).partition("=")[0] for word in words)
    same = (name for name in names if normalize_option(name) == normalize_option(error.option_name))
    return next(same, error.option_name)


def _known_options(ctx: click.Context | None) -> list[str]:
    if ctx is None:
        return []
    params = ctx.command.get_params(ctx)
    return [
        name
        for param in params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--")
    ]


def _bad_option(error: click.BadOptionUsage, command: str) -> UsageError:
    name = _as_typed(error)
    if command in _RUN and (absent := unsupported_option(name)):
        return UsageError(*absent)
    if "requires an argument" in error.message:
        return UsageError(
            _("{name} needs a value.").format(name=name),
            _("See `submarine {command} --help`.").format(command=command),
        )
    if several := _SEVERAL.search(error.message):
        words = _metavar(error) or _("{count} words").format(count=several[1])
        return UsageError(
            _("{name} needs {words}.").format(name=name, words=words),
            _("See `submarine {command} --help`.").format(command=command),
        )
    if "does not take a value" in error.message:
        return UsageError(
            _("{name} takes no value.").format(name=name),
            _("Write {name} alone.").format(name=name),
        )
    return UsageError(
        _("{name} of {command}: {error}.").format(
            name=name, command=command, error=printable(error.message, 120).rstrip(".")
        )
    )


def _metavar(error: click.BadOptionUsage) -> str | None:
    """Return the metavar of an option: ``NAME VALUE``."""
    params = error.ctx.command.get_params(error.ctx) if error.ctx else []
    return next((p.metavar for p in params if error.option_name in p.opts), None)


def _bad_value(error: click.BadParameter, command: str) -> UsageError:
    param = error.param
    if isinstance(param, click.Option):
        name = next((opt for opt in param.opts if opt.startswith("--")), param.opts[0])
    else:
        name = param.human_readable_name if param is not None else command
    if param is not None and isinstance(param.type, click.Choice):
        return _bad_choice(name, error.message, [str(item) for item in param.type.choices])
    message = printable(error.message, 200).rstrip(".")
    return UsageError(
        f"{name}: {message}.", _("See `submarine {command} --help`.").format(command=command)
    )


def _bad_choice(name: str, message: str, choices: list[str]) -> UsageError:
    """Return the error for an invalid choice; click's message contains the value in quotes."""
    value = message.split("'")[1] if message.count("'") > 1 else "this"
    close = difflib.get_close_matches(value.lower(), choices, 1, 0.5)
    hint = (
        _("did you mean {suggestion}?").format(suggestion=close[0])
        if close
        else _("choose one of {choices}.").format(choices=", ".join(choices))
    )
    return UsageError(
        _("{name} cannot be {value!r};").format(name=name, value=printable(value)), hint
    )
