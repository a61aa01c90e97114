from .drawing import as_svg as as_svg, as_text as as_text
from .outputs import (
    MIME_TYPE as MIME_TYPE,
    run_output as run_output,
    workflow_output as workflow_output,
)
from .states import (
    Caption as Caption,
    NextCommand as NextCommand,
    NodeState as NodeState,
    RunState as RunState,
)
