"""Where the document of this kernel's notebook lies, as far as the front end tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def document_path(namespace: Mapping[str, Any]) -> Path | None:
    """The notebook file, or None where nobody says or it is not there.

    VS Code puts ``__vsc_ipynb_file__`` into the namespace; jupyter-server starts kernels with
    ``JPY_SESSION_NAME``, which a rename of the document does not reach.
    """
    for told in (namespace.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME")):
        if isinstance(told, str) and told.endswith(".ipynb"):
            path = Path(told)
            if path.is_file():
                return path
    return None
