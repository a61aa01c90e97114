"""Show workflows and runs as text, HTML and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.display.drawing import as_svg as as_svg, as_text as as_text
    from submarine_workflows.display.outputs import (
        MIME_TYPE as MIME_TYPE,
        of_run as of_run,
        of_workflow as of_workflow,
    )
    from submarine_workflows.display.states import (
        Caption as Caption,
        NodeState as NodeState,
        RunState as RunState,
        Step as Step,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "drawing": ("as_svg", "as_text"),
            "outputs": ("MIME_TYPE", "of_run", "of_workflow"),
            "states": ("Caption", "NodeState", "RunState", "Step"),
        },
    )
