from .doctor import result_lines as result_lines
from .explain import (
    explain_word as explain_word,
)
from .grammar.cell_body import CellBody as CellBody
from .grammar.execution import complete as complete, execute as execute
