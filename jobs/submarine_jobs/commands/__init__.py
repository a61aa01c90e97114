"""The command language: one grammar for magics, command line, Python and Zeppelin.

``execute`` and ``complete`` run and complete a command line; neither prints nor ends the process.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
