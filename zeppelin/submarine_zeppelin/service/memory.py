"""Keeps this process small: freed memory goes back, and what nobody here needs is not loaded.

For the first only glibc has a knob; with another C library nothing happens. What a process may have
others load for it is ``submarine_jobs.concurrency.subprocess_calls``'s.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

#: Of glibc's malloc.h.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
#: Arenas of all threads; each keeps the most that it ever held.
ARENAS = 2
#: Bytes from which a buffer has a mapping of its own. glibc raises it with each one that is freed.
OWN_MAPPING = 128 << 10
#: Optional to jsonschema, which nbformat brings, and there with Jupyter's events: a grammar of
#: 16 MB for a form of addresses (``iri``) that no schema of a notebook asks for.
NOT_LOADED = "rfc3987_syntax"


def give_back_freed_memory() -> None:
    """Set it for this process; what it starts is not touched."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, OWN_MAPPING)


def load_no_grammar() -> None:
    """Have that package be as if it were not installed; before anything imports it."""
    sys.modules.setdefault(NOT_LOADED, None)  # type: ignore[arg-type]
