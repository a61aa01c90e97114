"""The IPython extension: register the magics, input transformers, event hooks and a matcher.

Loading takes a few milliseconds. ``submarine_magics.magics``, and with it the command line and the
libraries for the cluster, is imported when a command is first used.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import any_started, set_notebook
from submarine_jobs.program import tags_to_line, writes_file
from submarine_magics import commands, headless
from submarine_magics.execution import (
    Execution,
    Executions,
    current_request,
    has_thread_errors,
    record_thread_errors,
    rewrite_first_line,
    rewrite_question,
    rewrite_tagged_cell,
    runner_settings,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_magics.magics import SubmarineMagics

_TYPED = re.compile(r"(?:[ \t]*|.*=[ \t]*)(%%?)submarine[ \t](.*)\Z", re.DOTALL)
#: A cell that may start with a verb that takes the text below it.
_VERB_CELL = re.compile(r"\s*%%submarine[ \t]+[a-z]")
_MATCHER = "submarine_magics"
#: Attribute that marks the functions that are created for one shell.
_MARK = "_submarine_magics"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the extension; IPython calls it for ``%load_ext submarine_magics``."""
    if Executions.of(shell) is not None:
        return
    runner_settings()
    set_notebook(_notebook_names(shell))
    executions = Executions.attach(shell)
    executions.listeners.append(_tag_listener(shell))
    record_thread_errors(lambda: executions.latest)
    shell.events.register("post_run_cell", _cell_end_hook(shell))
    # IPython's `register_lazy` takes modules only before 9.17.
    register: Any = shell.register_magic_function
    register(_magic(shell), "line_cell", "submarine")
    shell.input_transformers_cleanup.extend(_transformers(shell))
    _matchers(shell).append(_matcher(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the hooks. The magics stay registered: IPython has no function to remove them."""
    executions = Executions.of(shell)
    if executions is None:
        return
    executions.detach()
    set_notebook(None)
    cleanup = shell.input_transformers_cleanup
    common = (rewrite_question, rewrite_first_line)
    cleanup[:] = [f for f in cleanup if f not in common and not hasattr(f, _MARK)]
    for hook in list(shell.events.callbacks["post_run_cell"]):
        if hasattr(hook, _MARK):
            shell.events.unregister("post_run_cell", hook)
    matchers = _matchers(shell)
    matchers[:] = [m for m in matchers if getattr(m, "matcher_identifier", "") != _MATCHER]


def _magics_of(shell: InteractiveShell) -> SubmarineMagics:
    # cost: the command line, which is loaded at the first use of a magic.
    from submarine_magics.magics import SubmarineMagics

    return SubmarineMagics.of(shell)


def _notebook_names(shell: InteractiveShell) -> Callable[[], tuple[str, ...]]:
    """Return a function that returns the notebook's names in the job index: kernel and path."""
    kernel, reference = f"kernel:{os.urandom(16).hex()}", weakref.ref(shell)

    def names() -> tuple[str, ...]:
        shell = reference()
        if shell is None:
            return ()
        path = _magics_of(shell).notebook_path()
        return (kernel,) if path is None else (kernel, str(path.absolute()))

    return names


def _magic(shell: InteractiveShell) -> Any:
    def submarine(line: str, cell: str | None = None) -> Any:
        """Run a Submarine command, or collect this cell into the training program.

        %submarine help                     all commands; %submarine help run: one command
        %submarine run digits --gpu 1       submit the collected cells as a job
        %%submarine [--file NAME.py] [--only]
                                            first line of a cell that is collected when it runs
        %submarine run --gpu?               help on a command or an option, like Shift+Tab
        """
        return _magics_of(shell).submarine(line, cell)

    return submarine


def _transformers(shell: InteractiveShell) -> list[Any]:
    """Return the input transformers; they change cells of Submarine only."""

    def rewrite_tagged(lines: list[str]) -> list[str]:
        return rewrite_tagged_cell(lines, current_request(shell))

    setattr(rewrite_tagged, _MARK, True)
    return [rewrite_tagged, rewrite_question, rewrite_first_line]


def _tag_listener(shell: InteractiveShell) -> Callable[[Execution], None]:
    """Return a listener that collects tagged cells and ``%%writefile x.py`` cells."""

    def collect(execution: Execution) -> None:
        tagged = execution.tags and tags_to_line(execution.tags) is not None
        if tagged or writes_file(execution.source):
            _magics_of(shell).collect_tagged(execution)

    return collect


def _cell_end_hook(shell: InteractiveShell) -> Callable[[Any], None]:
    """Return a hook that records a cell's exception, and waits for jobs in a headless run."""

    def end(result: Any) -> None:
        error = getattr(result, "error_in_exec", None)
        if error is not None and "submarine_magics.magics" in sys.modules:
            _magics_of(shell).note_exception(str(result.info.raw_cell), error)
        if any_started() or has_thread_errors():
            headless.end_cell(shell, result)

    setattr(end, _MARK, True)
    return end


def _matchers(shell: InteractiveShell) -> list[Any]:
    completer: Any = shell.Completer
    matchers: list[Any] = completer.custom_matchers
    return matchers


def _matcher(shell: InteractiveShell) -> Any:
    """Return a matcher (API version 2) for the text after and below ``%submarine``."""

    def match(context: Any) -> dict[str, Any]:
        typed = _TYPED.match(context.line_with_cursor[: context.cursor_position])
        if typed is None:
            found = None
            if _VERB_CELL.match(context.full_text):
                place = context.cursor_line, context.cursor_position
                found = commands.complete_text(context.full_text, *place)
            return found or {"completions": [], "suppress": False}
        return commands.complete(_magics_of(shell).frontend, typed[1], typed[2])

    marked: Any = match
    marked.matcher_api_version = 2
    marked.matcher_identifier = _MATCHER
    return marked
