"""Apply a function of the program to the parts of an input, and write the results as Parquet.

``submarine predict`` adds a call of ``run`` to the program. Each worker processes its share of the
parts. A worker that is started again continues after the parts that are stored already.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
