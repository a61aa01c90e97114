"""Version of the project, stated here alone.

`python scripts/release.py version X.Y.Z` writes it, also into the two files of the front end, which
cannot read Python.
"""

from __future__ import annotations

__version__ = "0.1.0"
