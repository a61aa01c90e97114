"""``execute`` and ``complete``: words in, an outcome or completions out.

Knows click, so that no front end has to. Never prints, never ends the process, never leaves a click
exception to its caller.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import Any

import click

from submarine_jobs.commands.grammar.cell_body import CellBody
from submarine_jobs.commands.grammar.usage import as_sentence, of_this_machine
from submarine_jobs.commands.grammar.verb import HelpRequested, spelled
from submarine_jobs.commands.grammar.verbs import grammar
from submarine_jobs.errors import job_of
from submarine_jobs.frontends import INTERRUPTED, Frontend, Outcome

MAX_COMPLETIONS = 200


def execute(argv: Sequence[str], frontend: Frontend, body: CellBody | None = None) -> Outcome:
    """Run one command.

    Parameters
    ----------
    argv
        The words after ``submarine``, ``%submarine`` or ``%%submarine``.
    body
        What stands below them in a cell, for the verbs of ``cell_verbs``; None: nothing does.

    Raises
    ------
    SubmarineError
        For everything that a person can get wrong and for clusters that do not answer; the
        message is one sentence, ``exit_code`` says which kind it is.
    """
    words = [word.encode("utf-8", "replace").decode() for word in argv]
    if not words:
        words = ["--help"]
    output = frontend.plugin_output
    redirect: contextlib.AbstractContextManager[Any] = (
        contextlib.nullcontext() if output is None else contextlib.redirect_stdout(output)
    )
    try:
        # Not click's `main`: that one prints, and looks for completion in the environment.
        verbs = grammar(in_cell=body is not None)
        name = "submarine" if body is None else "%%submarine"
        with redirect, verbs.make_context(name, words, obj=frontend) as context:
            if body is not None:
                body.give_to(context)
            result = verbs.invoke(context)
    except HelpRequested as request:
        text = (
            spelled(request.text, frontend.command) if frontend.kind == "notebook" else request.text
        )
        return Outcome(text=text, value={"help": text})
    except click.exceptions.Exit as end:
        return Outcome(exit_code=end.exit_code)
    except click.Abort:
        return Outcome(text="Interrupted.", exit_code=INTERRUPTED)
    except click.ClickException as error:
        raise as_sentence(error) from None
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.Error) as error:
        refusal = of_this_machine(error)
        refusal.job = job_of(error)
        raise refusal from error
    return _outcome(result)


def complete(words: Sequence[str], frontend: Frontend, *, in_cell: bool = False) -> list[str]:
    """What may stand in the place of the last of ``words``, which may be empty.

    ``in_cell`` completes ``%%submarine VERB``.
    Verbs, options, job ids and names, queues, profiles and the values of choices. Asks no cluster;
    finds nothing rather than fail.
    """
    # cost: click.shell_completion, which only a completion needs.
    from click.shell_completion import ShellComplete

    if not words:
        words = [""]
    try:
        completer = ShellComplete(grammar(in_cell=in_cell), {"obj": frontend}, "submarine", "")
        items = completer.get_completions(list(words[:-1]), words[-1])
    except Exception:  # Tab must never break what is being typed
        return []
    plain = [item.value for item in items if item.type == "plain"]
    return list(dict.fromkeys(plain))[:MAX_COMPLETIONS]


def _outcome(result: Any) -> Outcome:
    """A plug-in's verb may return anything: a text, an exit code, or nothing."""
    if isinstance(result, Outcome):
        return result
    if isinstance(result, str):
        return Outcome(text=result, value=result)
    if isinstance(result, int) and not isinstance(result, bool):
        return Outcome(exit_code=result)
    return Outcome()
