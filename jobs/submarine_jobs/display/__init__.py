"""Format jobs as text and HTML: pure functions of a ``JobView``, shared by all front ends.

Texts from a job are sanitized before they are shown.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
