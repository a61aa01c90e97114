"""Keep the memory of the interpreter process small: one process serves all users of Zeppelin."""

from __future__ import annotations

import contextlib
import ctypes
import sys

#: Constants of glibc's malloc.h.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
#: Number of malloc arenas. Each arena keeps its peak size.
ARENAS = 2
#: Buffers from this size in bytes are mapped. By default glibc raises this size when one is freed.
MMAP_THRESHOLD = 128 << 10
#: Optional dependency of jsonschema, which nbformat imports: a grammar of 16 MB for the format
#: ``iri``, which the schemas of notebooks do not use.
UNUSED_PACKAGE = "rfc3987_syntax"


def limit_retained_memory() -> None:
    """Configure glibc's malloc to return freed memory; no effect with other C libraries."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)


def release_freed_memory() -> None:
    """Return the free pages of glibc's heap; otherwise it returns only those at its end.

    A submission leaves 3 MB between objects that are in use, a workflow 7 MB. Takes less than a
    millisecond; no effect with other C libraries.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def block_unused_imports() -> None:
    """Make a package appear as not installed. Call this before it is imported."""
    sys.modules.setdefault(UNUSED_PACKAGE, None)  # type: ignore[arg-type]
