from .drawing import as_svg as as_svg, as_text as as_text
from .outputs import MIME_TYPE as MIME_TYPE, of_run as of_run, of_workflow as of_workflow
from .states import (
    Caption as Caption,
    NextCommand as NextCommand,
    NodeState as NodeState,
    RunState as RunState,
)
