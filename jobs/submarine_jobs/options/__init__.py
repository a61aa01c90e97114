"""Options of ``run``: parse and format values, validate them, and build a spec.

``commands.run`` implements the command.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
