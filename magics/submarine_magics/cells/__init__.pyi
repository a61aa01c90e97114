from .collected_modules import CollectedModules as CollectedModules
from .document import (
    RenamedDocument as RenamedDocument,
    document_path as document_path,
    reported_paths as reported_paths,
)
from .notebook_cells import NotebookCells as NotebookCells
