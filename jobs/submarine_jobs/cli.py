"""The command ``submarine``: show outcomes, and convert errors to exit codes.

``commands`` implements the commands, and ``frontends.terminal`` the output to the terminal.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from submarine_jobs.commands.grammar import grammar
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import INTERRUPTED, TerminalFrontend, to_json
from submarine_jobs.model import in_workflow_node
from submarine_jobs.text import filter_for_terminal, printable
from submarine_runtime.interpreter_exit import native_calls
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.frontends import Outcome

COMPLETE_VARIABLE = "_SUBMARINE_COMPLETE"
#: If set to any value, internal errors show their stack trace.
DEBUG_VARIABLE = "SUBMARINE_DEBUG"
#: Maximum length of an error message in characters.
MAX_SENTENCE = 100_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the entry point of ``submarine``."""
    code = _run(argv)
    if argv is None:
        native_calls.exit_code = code
    return code


def _run(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if COMPLETE_VARIABLE in os.environ:
        return _complete(os.environ[COMPLETE_VARIABLE])
    # cost: sqlite3, which a completion does not need.
    from submarine_jobs.commands import execute

    frontend = TerminalFrontend(json_asked="--json" in words)
    _interrupt_on_sigterm(argv)
    try:
        outcome = execute(words, frontend)
        if outcome.exit_code == INTERRUPTED:
            _ignore_signals(argv)
        frontend.finish()
        _show(outcome, after_open_line=frontend.line_open)
    except SubmarineError as error:
        frontend.finish()
        return _show_error(error, as_json=frontend.json_asked)
    except KeyboardInterrupt:
        _ignore_signals(argv)
        frontend.finish()
        told = [_("Interrupted.")]
        if "run" in words:
            told.append(_("`submarine list` shows whether a job was submitted."))
        print(" ".join(told), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has ended; Python must not report the error again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        kind = type(error).__name__
        _say(_("submarine: internal error: {kind}: {error}").format(kind=kind, error=error))
        print(
            _("{variable}=1 shows where; please report it.").format(variable=DEBUG_VARIABLE),
            file=sys.stderr,
        )
        return 1
    return outcome.exit_code


def _interrupt_on_sigterm(argv: Sequence[str] | None) -> None:
    """Handle SIGTERM in a workflow node like Ctrl-C: schedulers stop a node with it."""
    if argv is None and in_workflow_node():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _ignore_signals(argv: Sequence[str] | None) -> None:
    """Ignore signals while the process ends: a second Ctrl-C would show a stack trace."""
    if argv is None:  # otherwise the process belongs to the caller
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _show(outcome: Outcome, *, after_open_line: bool) -> None:
    text = outcome.rendered()
    if text:
        if after_open_line:
            print()
        print(_encodable(filter_for_terminal(text, sys.stdout), sys.stdout))
    sys.stdout.flush()


def _show_error(error: SubmarineError, *, as_json: bool) -> int:
    if as_json:
        kind = type(error).__name__
        print(to_json({"error": {"kind": kind, "message": error.message, "fix": error.fix}}))
    else:
        _say(f"submarine: {error}")
    return error.exit_code


def _say(sentence: str) -> None:
    """Write a sentence to stderr without control characters."""
    print(_encodable(printable(sentence, MAX_SENTENCE), sys.stderr), file=sys.stderr)


def _encodable(text: str, stream: TextIO) -> str:
    """Return ``text`` with characters that the encoding of the stream can represent."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _complete(instruction: str) -> int:
    """Print the completion script, or the completions, for the shell."""
    # cost: click.shell_completion, which only a completion needs.
    from click.shell_completion import shell_complete

    frontend = TerminalFrontend(json_asked=False)
    try:
        return shell_complete(
            grammar(), {"obj": frontend}, "submarine", COMPLETE_VARIABLE, instruction
        )
    except Exception:  # a completion must not print errors
        return 1


if __name__ == "__main__":
    sys.exit(main())
