"""The interpreters ``%submarine.python`` and ``%submarine.sh``, which run on Zeppelin's machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_zeppelin.local.values import pack_session_values as pack_session_values
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "values": ("pack_session_values",),
        },
    )
