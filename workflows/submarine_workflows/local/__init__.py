"""Run workflows on this machine with Azkaban's semantics, for example before scheduling them.

``progress`` contains the rules, ``runner`` executes them, ``journal`` records the run, and
``views`` reads it. ``node_commands`` defines the command of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.local.checks import missing_notebooks as missing_notebooks
    from submarine_workflows.local.keeper import GRACE as GRACE
    from submarine_workflows.local.options import (
        MAX_PARALLEL as MAX_PARALLEL,
        RunOptions as RunOptions,
    )
    from submarine_workflows.local.parameters import filler as filler
    from submarine_workflows.local.preparation import PROGRAM as PROGRAM
    from submarine_workflows.local.session import LocalSession as LocalSession
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "checks": ("missing_notebooks",),
            "keeper": ("GRACE",),
            "options": ("MAX_PARALLEL", "RunOptions"),
            "parameters": ("filler",),
            "preparation": ("PROGRAM",),
            "session": ("LocalSession",),
        },
    )
