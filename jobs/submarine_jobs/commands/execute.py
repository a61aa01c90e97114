"""``execute`` and ``complete``: words in, an outcome or completions out.

Knows click, so that no mouth has to. Never prints, never ends the process, never leaves a click
exception to its caller.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from typing import Any

import click

from submarine_jobs.commands.grammar import Grammar, build
from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.outcome import INTERRUPTED, Outcome
from submarine_jobs.commands.usage import as_sentence, of_this_machine
from submarine_jobs.commands.verb import HelpRequested

MAX_COMPLETIONS = 200


@functools.cache
def grammar() -> Grammar:
    """The grammar, made once."""
    return build()


def execute(argv: Sequence[str], mouth: Mouth) -> Outcome:
    """Run one command.

    Parameters
    ----------
    argv
        The words after ``submarine`` or ``%submarine``.

    Raises
    ------
    SubmarineError
        For everything that a person can get wrong and for clusters that do not answer; the
        message is one sentence, ``exit_code`` says which kind it is.
    """
    words = [word.encode("utf-8", "replace").decode() for word in argv]
    if not words:
        words = ["--help"]
    output = mouth.plugin_output
    redirect: contextlib.AbstractContextManager[Any] = (
        contextlib.nullcontext() if output is None else contextlib.redirect_stdout(output)
    )
    try:
        # Not click's `main`: that one prints, and looks for completion in the environment.
        with redirect, grammar().make_context("submarine", words, obj=mouth) as context:
            result = grammar().invoke(context)
    except HelpRequested as request:
        return Outcome(text=request.text, value={"help": request.text})
    except click.exceptions.Exit as end:
        return Outcome(exit_code=end.exit_code)
    except click.Abort:
        return Outcome(text="Interrupted.", exit_code=INTERRUPTED)
    except click.ClickException as error:
        raise as_sentence(error) from None
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise of_this_machine(error) from error
    return _outcome(result)


def complete(words: Sequence[str], mouth: Mouth) -> list[str]:
    """What may stand in the place of the last of ``words``, which may be empty.

    Verbs, options, job ids and names, queues, profiles and the values of choices. Asks no cluster;
    finds nothing rather than fail.
    """
    from click.shell_completion import ShellComplete

    if not words:
        words = [""]
    try:
        completer = ShellComplete(grammar(), {"obj": mouth}, "submarine", "")
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
