from .cell import Cell as Cell, join_labels as join_labels
from .cell_magic import (
    MAGIC as MAGIC,
    ONLY_TAG as ONLY_TAG,
    MarkedCell as MarkedCell,
    cell_verbs as cell_verbs,
    parse_cell as parse_cell,
    parse_options as parse_options,
    starts_job as starts_job,
    tags_of_metadata as tags_of_metadata,
    tags_to_line as tags_to_line,
    writes_file as writes_file,
)
from .collection import (
    CellCollection as CellCollection,
    CellState as CellState,
    CollectResult as CollectResult,
    ListedCell as ListedCell,
)
from .file_names import (
    PROGRAM as PROGRAM,
    check_file_name as check_file_name,
    package_files as package_files,
)
from .ipython_syntax import (
    IPythonSyntaxError as IPythonSyntaxError,
    clean_source as clean_source,
    parse_python as parse_python,
)
from .job_bundle import MAX_BYTES as MAX_BYTES, Bundle as Bundle, build_bundle as build_bundle
from .merging import merge_cells as merge_cells
from .notebook_document import (
    DocumentCell as DocumentCell,
    NotebookDocument as NotebookDocument,
    NotebookError as NotebookError,
    read_notebook as read_notebook,
)
from .scripts import (
    bundle_from_file as bundle_from_file,
    bundle_from_notebook as bundle_from_notebook,
    marked_cells as marked_cells,
)
from .uploads import (
    central_directory_size as central_directory_size,
    read_uploaded_zip as read_uploaded_zip,
    uploaded_bundle as uploaded_bundle,
)
