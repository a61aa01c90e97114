"""``%submarine`` and ``%%submarine``: cells in, displays out; loaded with ``%load_ext``.

Loading costs next to nothing: it registers names and small hooks, and everything else (the core,
the cluster's libraries) is imported when a command is first used. Does not know what a verb means:
that is the core's one grammar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from submarine_magics.executions import Executions
from submarine_magics.first_line import run_body_here

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_COMMAND_LINE = r"(?:.*[=\s])?%{1,2}submarine\b.*"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics, lazily, with completion; what ``%load_ext submarine_magics`` calls."""
    if Executions.of(shell) is not None:
        return
    Executions.attach(shell)
    shell.magics_manager.register_lazy(
        "submarine", "submarine_magics.magics:SubmarineMagics", "line_cell"
    )
    shell.input_transformers_cleanup.append(run_body_here)
    set_hook: Any = shell.set_hook
    set_hook("complete_command", _complete, re_key=_COMMAND_LINE)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the hooks away again; the magics themselves stay registered, as IPython has it."""
    executions = Executions.of(shell)
    if executions is None:
        return
    executions.detach()
    if run_body_here in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(run_body_here)


def _complete(shell: InteractiveShell, event: object) -> list[str]:
    from submarine_magics.completion import complete

    return complete(shell, event)
