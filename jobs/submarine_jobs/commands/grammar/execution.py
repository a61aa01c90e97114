"""Execute and complete command lines, independent of the front end.

Both functions hide click: they do not print, do not end the process, and raise no exceptions of
click.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import Any

import click

from submarine_jobs.commands.grammar.cell_body import CellBody
from submarine_jobs.commands.grammar.usage import convert_error, local_error
from submarine_jobs.commands.grammar.verb import HelpRequested, with_prefix
from submarine_jobs.commands.grammar.verbs import grammar
from submarine_jobs.errors import job_of
from submarine_jobs.frontends import INTERRUPTED, Frontend, Outcome
from submarine_runtime.translation import _

MAX_COMPLETIONS = 200


def execute(argv: Sequence[str], frontend: Frontend, body: CellBody | None = None) -> Outcome:
    """Execute one command.

    Parameters
    ----------
    argv
        The words after ``submarine``, ``%submarine`` or ``%%submarine``.
    body
        The text below the command in a cell, for the verbs of ``cell_verbs``; None: none.

    Raises
    ------
    SubmarineError
        For errors of the user and clusters that do not answer; ``exit_code`` is the kind of error.
    """
    words = [word.encode("utf-8", "replace").decode() for word in argv]
    if not words:
        words = ["--help"]
    output = frontend.plugin_output
    redirect: contextlib.AbstractContextManager[Any] = (
        contextlib.nullcontext() if output is None else contextlib.redirect_stdout(output)
    )
    try:
        # click's `main` prints, and reads completion settings from the environment.
        group = grammar(in_cell=body is not None)
        name = "submarine" if body is None else "%%submarine"
        with redirect, group.make_context(name, words, obj=frontend) as context:
            if body is not None:
                body.give_to(context)
            result = group.invoke(context)
    except HelpRequested as request:
        text = (
            with_prefix(request.text, frontend.command)
            if frontend.kind == "notebook"
            else request.text
        )
        return Outcome(text=text, value={"help": text})
    except click.exceptions.Exit as end:
        return Outcome(exit_code=end.exit_code)
    except click.Abort:
        return Outcome(text=_("Interrupted."), exit_code=INTERRUPTED)
    except click.ClickException as error:
        raise convert_error(error) from None
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.Error) as error:
        refusal = local_error(error)
        refusal.job = job_of(error)
        raise refusal from error
    return _outcome(result)


def complete(words: Sequence[str], frontend: Frontend, *, in_cell: bool = False) -> list[str]:
    """Return completions of the last of ``words``, which may be empty; none on an error.

    Completes verbs, options, job ids and names, queues, profiles and choices, without a request to
    the cluster. ``in_cell`` completes ``%%submarine VERB``.
    """
    # cost: click.shell_completion, which only a completion needs.
    from click.shell_completion import ShellComplete

    if not words:
        words = [""]
    try:
        completer = ShellComplete(grammar(in_cell=in_cell), {"obj": frontend}, "submarine", "")
        items = completer.get_completions(list(words[:-1]), words[-1])
    except Exception:  # completion must not raise in an editor
        return []
    plain = [item.value for item in items if item.type == "plain"]
    return list(dict.fromkeys(plain))[:MAX_COMPLETIONS]


def _outcome(result: Any) -> Outcome:
    """Convert the result of a plug-in's verb: an outcome, a text, an exit code, or None."""
    if isinstance(result, Outcome):
        return result
    if isinstance(result, str):
        return Outcome(text=result, value=result)
    if isinstance(result, int) and not isinstance(result, bool):
        return Outcome(exit_code=result)
    return Outcome()
