"""Where the document of this kernel's notebook lies, as far as the front end tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def document_path(namespace: Mapping[str, Any]) -> Path | None:
    """The notebook file, or None where nobody says or it is not there."""
    return next((path for path in told_paths(namespace) if path.is_file()), None)


def told_paths(namespace: Mapping[str, Any]) -> list[Path]:
    """Where front ends say that the notebook is; it may have been renamed since.

    VS Code puts ``__vsc_ipynb_file__`` into the namespace; jupyter-server starts kernels with
    ``JPY_SESSION_NAME``, which a rename of the document does not reach.
    """
    told = (namespace.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME"))
    return [Path(word) for word in told if isinstance(word, str) and word.endswith(".ipynb")]
