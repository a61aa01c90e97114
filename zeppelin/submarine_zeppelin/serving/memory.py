"""Has memory that was freed go back to the system; a process of many threads keeps much of it.

Only glibc has such a knob; with another C library nothing happens.
"""

from __future__ import annotations

import contextlib
import ctypes

#: Of glibc's malloc.h.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
#: Arenas of all threads; each keeps the most that it ever held.
ARENAS = 2
#: Bytes from which a buffer has a mapping of its own. glibc raises it with each one that is freed.
OWN_MAPPING = 128 << 10


def give_back_freed_memory() -> None:
    """Set it for this process; what it starts is not touched."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, OWN_MAPPING)
