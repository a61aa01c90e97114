"""Engine of ``papermill --engine submarine``, found by its entry point.

Papermill loads all engines when it starts, so this module imports nothing at the top. Importing
papermill here would fail when this module is imported first, because papermill loads this class
during its own import.
"""

from __future__ import annotations

from typing import Any


class SubmarineEngine:
    """Run a notebook as papermill does, and wait for the jobs that it starts.

    Implements the three methods of ``papermill.engines.Engine`` that papermill calls.
    """

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, **kwargs: Any) -> Any:
        """Execute ``nb``; return the notebook with its outputs.

        Raises
        ------
        MissingExtraError
            If the extra ``workflows`` is not installed.
        SystemExit
            If a signal or the time limit stopped the run; with the exit code for papermill's
            command.
        """
        # cost: papermill loads every engine at its start, before it is complete.
        from submarine_workflows.headless.managed_run import execute_for_papermill

        return execute_for_papermill(nb, kernel_name, kwargs)

    @classmethod
    def nb_kernel_name(cls, nb: Any, name: str | None = None) -> str:
        """Return ``name`` or the kernel that the notebook names."""
        # cost: papermill loads every engine at its start, before it is complete.
        from papermill.utils import nb_kernel_name

        return str(nb_kernel_name(nb, name))

    @classmethod
    def nb_language(cls, nb: Any, language: str | None = None) -> str:
        """Return ``language`` or the language of the notebook."""
        # cost: papermill loads every engine at its start, before it is complete.
        from papermill.utils import nb_language

        return str(nb_language(nb, language))
