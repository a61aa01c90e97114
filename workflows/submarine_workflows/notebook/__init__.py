"""Workflows in notebook cells: save, draw, run and watch them.

Notebooks are accessed only through their front end (``submarine_jobs.frontends``), so
Zeppelin works in the same way.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
