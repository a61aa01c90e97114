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
    help_option,
    normal,
)
from submarine_jobs.errors import SubmarineError
from submarine_jobs.program import cell_verbs

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "submarine.commands"


class VerbEntry(NamedTuple):
    """A verb: its section in the help, its line of help, its module."""

    section: str
    summary: str
    module: str


VERBS: dict[str, VerbEntry] = {
    "run": VerbEntry("Jobs", "Run a program, a notebook or the collected cells as a job.", "run"),
    "list": VerbEntry("Jobs", "List your jobs, newest first.", "list_jobs"),
    "show": VerbEntry(
        "Jobs", "Show one job: state, reason, times, result, end of its log.", "show"
    ),
    "logs": VerbEntry("Jobs", "Print a job's log, or follow it.", "logs"),
    "metrics": VerbEntry("Jobs", "Show CPU, memory and GPU of a job's tasks.", "metrics"),
    "tensorboard": VerbEntry("Jobs", "Show TensorBoard of jobs, to compare them.", "tensorboard"),
    "wait": VerbEntry("Jobs", "Wait until jobs have ended.", "wait"),
    "cancel": VerbEntry("Jobs", "Cancel a job.", "cancel"),
    "save": VerbEntry("Jobs", "Save a job's model as it is now, as a named version.", "save"),
    "models": VerbEntry(
        "Jobs", "List the saved versions of a job's model, or copy one here.", "models"
    ),
    "rerun": VerbEntry("Jobs", "Run a job again, from its job directory alone.", "rerun"),
    "cells": VerbEntry(
        "Notebook cells", "Show which cells are collected, and in what order.", "cells"
    ),
    "script": VerbEntry(
        "Notebook cells", "Show the program that the collected cells make.", "script"
    ),
    "clear": VerbEntry("Notebook cells", "Forget the collected cells.", "clear"),
    "config": VerbEntry("Set-up", "Show each configured value and where it came from.", "config"),
    "doctor": VerbEntry(
        "Set-up", "Check this machine and the cluster, with the fix for each.", "doctor"
    ),
}
#: Lines of help for the project's own plug-ins, so that the help does not import them.
PLUGIN_SUMMARIES = {
    "minicluster": "Start and stop a real Hadoop (HDFS, YARN) on this machine.",
    "kernel": "Install a notebook kernel: of this machine, or in a container.",
    "notebook": "A whole JupyterLab or Zeppelin in a container of the cluster.",
    "workflow": "Notebooks that run after each other: check, draw and run them.",
    "zeppelin": "Put the interpreter group submarine into a Zeppelin.",
}


@functools.cache
def plugins() -> dict[str, EntryPoint]:
    """Return the verbs of other packages by name; only package metadata is read."""
    # cost: importlib.metadata (5 ms), which a verb of this package does not need.
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in VERBS}


class Grammar(click.Group):
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

        summaries = {name: entry.summary for name, entry in VERBS.items()}
        verbs = [
            CompletionItem(name, help=summaries.get(name, PLUGIN_SUMMARIES.get(name)))
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
            sections.setdefault(entry.section, []).append((name, entry.summary))
        for name, point in sorted(plugins().items()):
            summary = PLUGIN_SUMMARIES.get(name, f"From {point.module.partition('.')[0]}.")
            sections.setdefault("Set-up", []).append((name, summary))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples for a first job."""
        with formatter.section("The first minute"):
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
        raise SubmarineError(f"The command {name} is broken: it is no click command.")
    return found


def _load(point: EntryPoint) -> object:
    try:
        return point.load()
    except (ImportError, AttributeError) as exc:
        package = point.module.partition(".")[0]
        raise SubmarineError(
            f"The command {point.name} cannot be loaded from {package}: {exc}.",
            "Install the package again.",
        ) from exc


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        # cost: importlib.metadata (5 ms), which a verb of this package does not need.
        from importlib.metadata import version

        raise HelpRequested(f"submarine {version('jupyter-submarine')}")


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
