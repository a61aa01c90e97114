"""``%submarine`` and ``%%submarine``: cells in, displays out; loaded with ``%load_ext``.

Loading costs next to nothing: it registers names and small hooks, and everything else (the core,
the cluster's libraries) is imported when a command is first used. Does not know what a verb means:
that is the core's one grammar.
"""

from __future__ import annotations

import re
import sys
import uuid
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import started_jobs as started
from submarine_jobs.program import line_of_tags, writes_file
from submarine_magics.commands import answer_question
from submarine_magics.execution import (
    Execution,
    Executions,
    only_by_tag,
    requested,
    run_body_here,
    thread_errors,
    told_by_runner,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_TYPED = re.compile(r"(?:[ \t]*|.*=[ \t]*)(%%?)submarine[ \t](.*)\Z", re.DOTALL)
#: A cell that may be one of a verb with text of its own below it.
_VERB_CELL = re.compile(r"\s*%%submarine[ \t]+[a-z]")
_MATCHER = "submarine_magics"
#: Attribute of the transformer that is made for one shell.
_OURS = "_submarine_magics"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics, lazily, with completion; what ``%load_ext submarine_magics`` calls."""
    if Executions.of(shell) is not None:
        return
    told_by_runner()
    started.set_notebook(_names_of_notebook(shell))
    executions = Executions.attach(shell)
    executions.listeners.append(_collector_of_tagged(shell))
    thread_errors.listen(lambda: executions.latest)
    shell.events.register("post_run_cell", _at_cell_end(shell))
    # A small function instead of IPython's `register_lazy`, which before 9.17 takes modules only.
    register: Any = shell.register_magic_function
    register(_magic(shell), "line_cell", "submarine")
    shell.input_transformers_cleanup.extend(_transformers(shell))
    _matchers(shell).append(_matcher(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the hooks away again; the magics themselves stay registered, as IPython has it."""
    executions = Executions.of(shell)
    if executions is None:
        return
    executions.detach()
    started.set_notebook(None)
    cleanup = shell.input_transformers_cleanup
    ours = (answer_question, run_body_here)
    cleanup[:] = [f for f in cleanup if f not in ours and not hasattr(f, _OURS)]
    for hook in list(shell.events.callbacks["post_run_cell"]):
        if hasattr(hook, _OURS):
            shell.events.unregister("post_run_cell", hook)
    matchers = _matchers(shell)
    matchers[:] = [m for m in matchers if getattr(m, "matcher_identifier", "") != _MATCHER]


def _names_of_notebook(shell: InteractiveShell) -> Callable[[], tuple[str, ...]]:
    """Names by which the index of jobs knows this notebook: its kernel and its document's path."""
    kernel, here = f"kernel:{uuid.uuid4().hex}", weakref.ref(shell)

    def names() -> tuple[str, ...]:
        from submarine_magics.magics import SubmarineMagics

        shell = here()
        if shell is None:
            return ()
        path = SubmarineMagics.of(shell).notebook_path()
        return (kernel,) if path is None else (kernel, str(path.absolute()))

    return names


def _magic(shell: InteractiveShell) -> Any:
    def submarine(line: str, cell: str | None = None) -> Any:
        """Run a command of Submarine, or collect this cell into the training program.

        %submarine help                     all commands; %submarine help run: one of them
        %submarine run digits --gpu 1       submit the collected cells as a job
        %%submarine [--file NAME.py] [--only]
                                            first line of a cell: it is collected as it runs
        %submarine run --gpu?               help on a command or an option, as Shift+Tab
        """
        from submarine_magics.magics import SubmarineMagics

        return SubmarineMagics.of(shell).submarine(line, cell)

    return submarine


def _transformers(shell: InteractiveShell) -> list[Any]:
    """What rewrites a cell before IPython compiles it; nothing but our own cells is touched."""

    def leave_only_tagged(lines: list[str]) -> list[str]:
        return only_by_tag(lines, requested(shell))

    setattr(leave_only_tagged, _OURS, True)
    return [leave_only_tagged, answer_question, run_body_here]


def _collector_of_tagged(shell: InteractiveShell) -> Callable[[Execution], None]:
    """What looks at each execution: collects tagged cells and ``%%writefile x.py`` cells."""

    def collect(execution: Execution) -> None:
        tagged = execution.tags and line_of_tags(execution.tags) is not None
        if tagged or writes_file(execution.source):
            from submarine_magics.magics import SubmarineMagics

            SubmarineMagics.of(shell).collect_tagged(execution)

    return collect


def _at_cell_end(shell: InteractiveShell) -> Callable[[Any], None]:
    """What ends each cell: notes its exception; headless runs may have to wait for its jobs."""

    def end(result: Any) -> None:
        error = getattr(result, "error_in_exec", None)
        if error is not None and "submarine_magics.magics" in sys.modules:
            from submarine_magics.magics import SubmarineMagics

            SubmarineMagics.of(shell).note_exception(str(result.info.raw_cell), error)
        if started.anything() or thread_errors.some():
            from submarine_magics.headless import end_cell

            end_cell(shell, result)

    setattr(end, _OURS, True)
    return end


def _matchers(shell: InteractiveShell) -> list[Any]:
    completer: Any = shell.Completer
    matchers: list[Any] = completer.custom_matchers
    return matchers


def _matcher(shell: InteractiveShell) -> Any:
    """A matcher of IPython's second API: completes what stands after or below ``%submarine``."""

    def match(context: Any) -> dict[str, Any]:
        typed = _TYPED.match(context.line_with_cursor[: context.cursor_position])
        if typed is None:
            found = None
            if _VERB_CELL.match(context.full_text):
                from submarine_magics.commands import complete_text

                place = context.cursor_line, context.cursor_position
                found = complete_text(context.full_text, *place)
            return found or {"completions": [], "suppress": False}
        from submarine_magics.commands import complete

        return complete(shell, typed[1], typed[2])

    marked: Any = match
    marked.matcher_api_version = 2
    marked.matcher_identifier = _MATCHER
    return marked
