"""Which files of its folder a workflow takes along, whatever scheduler it goes to.

Goes through the nodes; how a file is found and what it needs in its turn is ``Carried``'s.
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
    """Content by path: the notebooks, what they and the commands name, and what is asked for.

    Parameters
    ----------
    root
        Folder of the workflow's file.
    notebook
        The notebook whose cells its nodes run; empty: the one that the workflow names.
    also
        Patterns of further files, ``lib/*.py``.

    Raises
    ------
    UsageError
        If a file is missing, too large, a credential or outside of ``root``.
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
