"""A job in words and pictures: pure functions of a ``JobView``, the same for every front end.

Asks nobody, keeps nothing and never shows a text from a job without making it harmless first.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
