"""The engine that ``papermill --engine submarine`` finds by its entry point.

Papermill loads every engine of every package whenever it starts, so this module imports nothing
of weight. It does not even import papermill: who imports this module first would find papermill
in the middle of loading this same class.
"""

from __future__ import annotations

from typing import Any


class SubmarineEngine:
    """Runs a notebook as papermill does, and ends when the jobs have ended that it started.

    Has the three methods of ``papermill.engines.Engine`` that papermill calls.
    """

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, **kwargs: Any) -> Any:
        """Execute ``nb``; gives the notebook with its outputs.

        Raises
        ------
        SystemExit
            If a signal or the time limit ended the run; papermill's command ends with its code.
        """
        from submarine_workflows.headless.engine_run import execute_for_papermill

        return execute_for_papermill(nb, kernel_name, kwargs)

    @classmethod
    def nb_kernel_name(cls, nb: Any, name: str | None = None) -> str:
        """The kernel that the notebook names, unless ``name`` is given."""
        from papermill.utils import nb_kernel_name

        return str(nb_kernel_name(nb, name))

    @classmethod
    def nb_language(cls, nb: Any, language: str | None = None) -> str:
        """The language that the notebook is written in, unless ``language`` is given."""
        from papermill.utils import nb_language

        return str(nb_language(nb, language))
