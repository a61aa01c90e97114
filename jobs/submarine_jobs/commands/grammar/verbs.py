"""The click group of all verbs, with the plug-ins of other packages.

A verb is imported when it is used. The list of verbs in the help needs no imports, because the
table here has one line for each verb.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from submarine_jobs.commands.grammar.usage import no_such_verb
from submarine_jobs.commands.grammar.verb import (
    CONTEXT,
    GroupedOption,
    HelpRequested,
    TranslatedHelp,
    help_option,
    normal,
)
from submarine_jobs.errors import SubmarineError
from submarine_jobs.program import cell_verbs
from submarine_jobs.version import __version__
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "submarine.commands"


class VerbEntry(NamedTuple):
    """A verb: its section in the help, its line of help, its module."""

    section: str
    summary: str
    module: str


_JOBS = gettext_noop("Jobs")
_CELLS = gettext_noop("Notebook cells")
_SETUP = gettext_noop("Set-up")
VERBS: dict[str, VerbEntry] = {
    "run": VerbEntry(
        _JOBS,
        gettext_noop("Run a program, a notebook or the collected cells as a job."),
        "run",
    ),
    "job": VerbEntry(
        _JOBS,
        gettext_noop("Run a job by Apache Submarine's command line: job run."),
        "job",
    ),
    "list": VerbEntry(_JOBS, gettext_noop("List your jobs, newest first."), "list_jobs"),
    "show": VerbEntry(
        _JOBS,
        gettext_noop("Show one job: state, reason, times, result, end of its log."),
        "show",
    ),
    "logs": VerbEntry(_JOBS, gettext_noop("Print a job's log, or follow it."), "logs"),
    "metrics": VerbEntry(
        _JOBS, gettext_noop("Show CPU, memory and GPU of a job's tasks."), "metrics"
    ),
    "stack": VerbEntry(
        _JOBS, gettext_noop("Show where each rank of a running job is: its stacks."), "stack"
    ),
    "tensorboard": VerbEntry(
        _JOBS,
        gettext_noop("Show TensorBoard of jobs, to compare them."),
        "tensorboard",
    ),
    "wait": VerbEntry(_JOBS, gettext_noop("Wait until jobs have ended."), "wait"),
    "cancel": VerbEntry(_JOBS, gettext_noop("Cancel a job."), "cancel"),
    "save": VerbEntry(
        _JOBS,
        gettext_noop("Save a job's model as it is now, as a named version."),
        "save",
    ),
    "models": VerbEntry(
        _JOBS,
        gettext_noop("List the saved versions of a job's model, or copy one here."),
        "models",
    ),
    "data": VerbEntry(
        _JOBS,
        gettext_noop("Store data for jobs under a name: put, list, show, rm."),
        "data",
    ),
    "env": VerbEntry(
        _JOBS,
        gettext_noop("Python environments of jobs: build, list, show, check, rm."),
        "env",
    ),
    "gc": VerbEntry(
        _JOBS,
        gettext_noop("Remove packed environments that no job uses."),
        "gc",
    ),
    "publish": VerbEntry(
        _JOBS,
        gettext_noop("Publish a model to HDFS, an object store or MLflow."),
        "publish",
    ),
    "predict": VerbEntry(
        _JOBS,
        gettext_noop("Apply a function to the rows of an input, and write the results."),
        "predict",
    ),
    "rerun": VerbEntry(
        _JOBS,
        gettext_noop("Run a job again, from its job directory alone."),
        "rerun",
    ),
    "cells": VerbEntry(
        _CELLS,
        gettext_noop("Show which cells are collected, and in what order."),
        "cells",
    ),
    "script": VerbEntry(
        _CELLS,
        gettext_noop("Show the program that the collected cells make."),
        "script",
    ),
    "clear": VerbEntry(_CELLS, gettext_noop("Forget the collected cells."), "clear"),
    "config": VerbEntry(
        _SETUP,
        gettext_noop("Show each configured value and where it came from."),
        "config",
    ),
    "login": VerbEntry(
        _SETUP,
        gettext_noop("Get a Kerberos ticket by your password."),
        "login",
    ),
    "doctor": VerbEntry(
        _SETUP,
        gettext_noop("Check this machine and the cluster, with the fix for each."),
        "doctor",
    ),
}
#: Lines of help for the project's own plug-ins, so that the help does not import them.
PLUGIN_SUMMARIES = {
    "minicluster": gettext_noop("Start and stop a real Hadoop (HDFS, YARN) on this machine."),
    "kernel": gettext_noop("Install a notebook kernel: of this machine, or in a container."),
    "notebook": gettext_noop("A whole JupyterLab or Zeppelin in a container of the cluster."),
    "workflow": gettext_noop("Notebooks that run after each other: check, draw and run them."),
    "zeppelin": gettext_noop("Put the interpreter group submarine into a Zeppelin."),
}


@functools.cache
def plugins() -> dict[str, EntryPoint]:
    """Return the verbs of other packages by name; only package metadata is read."""
    # cost: importlib.metadata (5 ms), which a verb of this package does not need.
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in VERBS}


class Grammar(TranslatedHelp, click.Group):
    """The group of all verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return [*VERBS, *sorted(plugins())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb; None if it does not exist."""
        if cmd_name in VERBS:
            module = importlib.import_module(f"submarine_jobs.commands.{VERBS[cmd_name].module}")
            command = getattr(module, VERBS[cmd_name].module)
        elif cmd_name in plugins():
            command = _load(plugins()[cmd_name])
        else:
            return None
        return _command(command, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See ``click.Group``; raise the error of this project for unknown verbs."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None:
            if ctx.resilient_parsing:
                return None, None, args[1:]
            raise no_such_verb(name, self.list_commands(ctx))
        return name, command, args[1:]

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return verbs from the table, then the options of the group."""
        # cost: click.shell_completion, which only a completion needs.
        from click.shell_completion import CompletionItem

        summaries = {name: entry.summary for name, entry in VERBS.items()} | PLUGIN_SUMMARIES
        verbs = [
            CompletionItem(name, help=_(summaries[name]) if name in summaries else None)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return a ``--help`` option that raises the text instead of printing it."""
        return help_option(self.get_help_option_names(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by section, from the table."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in VERBS.items():
            sections.setdefault(entry.section, []).append((name, _(entry.summary)))
        for name, point in sorted(plugins().items()):
            known = PLUGIN_SUMMARIES.get(name, "")
            package = point.module.partition(".")[0]
            summary = _(known) if known else _("From {package}.").format(package=package)
            sections.setdefault(_SETUP, []).append((name, summary))
        for section, rows in sections.items():
            with formatter.section(_(section)):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples for a first job."""
        with formatter.section(_("The first minute")):
            for line in (
                "submarine minicluster start",
                "submarine run train.py --profile minicluster --memory 2G --wait",
                "submarine run train.py --backend local --wait      (no cluster, no Java)",
            ):
                formatter.write(f"  {line}\n")


class CellGrammar(Grammar):
    """The group of the verbs with a text below ``%%submarine VERB``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of these verbs."""
        return sorted(cell_verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one of these verbs; None if it does not exist."""
        point = cell_verbs().get(cmd_name)
        return _command(_load(point), cmd_name) if point is not None else None


def _command(found: object, name: str) -> click.Command:
    if not isinstance(found, click.Command):
        raise SubmarineError(
            _("The command {name} is invalid: it is not a click command.").format(name=name)
        )
    return found


def _load(point: EntryPoint) -> object:
    try:
        return point.load()
    except (ImportError, AttributeError) as exc:
        package = point.module.partition(".")[0]
        raise SubmarineError(
            _("The command {point} cannot be loaded from {package}: {error}.").format(
                point=point.name, package=package, error=exc
            ),
            _("Install the package again."),
        ) from exc


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        raise HelpRequested(f"submarine {__version__}")


def build(options: Sequence[click.Parameter] = (), *, in_cell: bool = False) -> Grammar:
    """Build the group of all verbs; with ``in_cell``, of the verbs with a text below them."""
    version = GroupedOption(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help="Show the version.",
    )
    return (CellGrammar if in_cell else Grammar)(
        name="submarine",
        params=[version, *options],
        help="Run notebook cells and Python programs as training jobs on YARN.",
        context_settings={**CONTEXT, "token_normalize_func": normal},
        subcommand_metavar="VERB [OPTIONS] ...",
        no_args_is_help=False,
        invoke_without_command=False,
    )


@functools.cache
def grammar(*, in_cell: bool = False) -> Grammar:
    """Return the group of all verbs, built once; see ``build``."""
    return build(in_cell=in_cell)
