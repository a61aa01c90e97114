"""Options of ``run NOTEBOOK.ipynb`` that apply only to the execution of a notebook."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import (
    ParsedType,
    duration_option,
    option,
    parameters_option,
    printable,
)
from submarine_jobs.commands.run.declared_options import together
from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _, gettext_noop

_HEADING = gettext_noop("Executing a notebook")
_MAX_KEY = 60


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UsageError(_("--cells names no cell."), _("Write for example --cells load,summary."))
    return names


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    key = key.strip().removeprefix("--")
    if not equals or not key or len(key) > _MAX_KEY or not key.isprintable():
        raise UsageError(
            _("--job {text!r} is not OPTION=VALUE.").format(text=printable(text)),
            _("Write options of run without dashes, for example --job worker=2."),
        )
    return key, value


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words:
        raise UsageError(
            _("--notify {text!r} is no command.").format(text=printable(text)),
            _("Its quotes must close."),
        )
    return text


class _JobPair(ParsedType):
    """The type of ``--job``, which completes options of ``run``."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names of options of jobs."""
        own = notebook_parameters(ctx.command)
        names = (
            name.removeprefix("--")
            for other in ctx.command.params
            if isinstance(other, click.Option)
            and other.name not in (*own, "as_json", "wait", "dry_run")
            for name in other.opts
        )
        return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]


def _own(*declarations: str, **attrs: Any) -> Callable[[Any], Any]:
    return option(*declarations, heading=_HEADING, **attrs)


NOTEBOOK_RUN = together(
    [
        _own(
            "--execute", is_flag=True, help="Execute the notebook here; its cells start the jobs."
        ),
        _own(
            "-o",
            "--output",
            metavar="URI",
            help="Executed notebook: a path, hdfs://, any fsspec URL [NAME-TIME.ipynb].",
        ),
        parameters_option("Parameter of the notebook; repeatable.", _HEADING),
        _own(
            "-r",
            "--parameters_raw",
            "raw_parameters",
            nargs=2,
            multiple=True,
            metavar="NAME TEXT",
            help="Parameter that is always a string; repeatable.",
        ),
        _own(
            "-f",
            "--parameters_file",
            "parameter_files",
            multiple=True,
            metavar="FILE",
            help="Parameters from a YAML file; repeatable.",
        ),
        _own("-k", "--kernel", metavar="NAME", help="Kernel [the notebook's]."),
        _own(
            "--cells",
            type=ParsedType("names", _names, prefix=False),
            metavar="NAMES",
            help="Only these cells: ids, tags, titles or headings, separated by commas.",
        ),
        _own(
            "--job",
            "job_pairs",
            type=_JobPair("pair", _pair, prefix=False),
            multiple=True,
            metavar="OPTION=VALUE",
            help="Option for each job of the notebook; overrides those in its cells; repeatable.",
        ),
        _own(
            "--run-id",
            metavar="ID",
            help="A second run with this id attaches to the jobs of the first.",
        ),
        duration_option(
            "--lease",
            heading=_HEADING,
            help="Its jobs end when the run has not renewed their lease for this time: 10m.",
        ),
        _own(
            "--notify",
            type=ParsedType("command", _command, prefix=False),
            metavar="COMMAND",
            help="Command that runs if the notebook fails; its standard input is a JSON report.",
        ),
    ]
)


def notebook_parameters(command: click.Command) -> list[str]:
    """Return the names of the parameters of these options."""
    return [
        param.name
        for param in command.params
        if param.name and getattr(param, "heading", "") == _HEADING
    ]
