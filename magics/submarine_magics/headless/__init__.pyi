from .cell_end import end_cell as end_cell
