"""Select the files that a workflow needs, for every scheduler.

Iterates over the nodes; ``Carried`` finds the files and their dependencies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from submarine_workflows.model import Kind, Workflow, split_command
from submarine_workflows.project_files import Carried

_COMMAND = re.compile(r"command(\.\d+)?")


def carry(
    workflow: Workflow, root: Path, notebook: str = "", also: Iterable[str] = ()
) -> dict[str, bytes]:
    """Return content by path: notebooks, the files that they and commands need, and ``also``.

    Parameters
    ----------
    root
        Folder of the workflow file.
    notebook
        Notebook of the nodes that run cells; empty: the notebook that the workflow names.
    also
        Patterns of further files, ``lib/*.py``.

    Raises
    ------
    UsageError
        If a file is missing, too large, a credential, or outside ``root``.
    """
    carried = Carried(root)
    for _, node in workflow.walk():
        if node.kind is Kind.NOTEBOOK:
            carried.notebook(node.notebook)
        elif node.kind is Kind.CELLS:
            carried.notebook(notebook or workflow.notebook)
        else:
            for key, line in node.config.items():
                if _COMMAND.fullmatch(key):
                    carried.words(split_command(line))
    for pattern in also:
        carried.matching(pattern)
    return carried.files
