"""Values that are exchanged between a notebook and a program, without pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.values.archive import (
        DEFAULT_LIMIT as DEFAULT_LIMIT,
        Unpacked as Unpacked,
        pack_values as pack_values,
        unpack_values as unpack_values,
    )
    from submarine_runtime.values.encoder import ValuesError as ValuesError
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "archive": ("DEFAULT_LIMIT", "Unpacked", "pack_values", "unpack_values"),
            "encoder": ("ValuesError",),
        },
    )
