"""``scripts/example_notebooks.py``, for tests of the examples."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
try:
    from example_notebooks import EXAMPLES, FOLDER, ROOT, description, notebook_of, programs
finally:
    sys.path.pop(0)

__all__ = ["EXAMPLES", "FOLDER", "ROOT", "description", "notebook_of", "programs"]
