"""Read and write workflow files: Flow 2.0 YAML, Flow 1.0 job files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.formats.files import FLOWS as FLOWS, open_workflow as open_workflow
    from submarine_workflows.formats.flow1 import read_jobs as read_jobs
    from submarine_workflows.formats.flow2 import read_workflow as read_workflow
    from submarine_workflows.formats.marked_yaml import Value as Value, load as load
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "files": ("FLOWS", "open_workflow"),
            "flow1": ("read_jobs",),
            "flow2": ("read_workflow",),
            "marked_yaml": ("Value", "load"),
        },
    )
