"""Convert parameters entered as text to numbers, lists or other values."""

from __future__ import annotations

import ast
import math
from typing import Any

_WORDS = {"true": True, "false": False, "null": None}
MAX_LITERAL = 100_000


def value_of(typed: Any) -> Any:
    """Return the value of ``typed``, which can be encoded as JSON.

    ``0.1``, ``[1, 2]``, ``"ada"`` (with quotes), ``None`` and ``true`` are converted; any other
    text is returned unchanged, as are values that are not text.
    """
    if not isinstance(typed, str):
        return typed
    text = typed.strip()
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > MAX_LITERAL:
        return typed
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return typed
    return value if _carried(value) else typed


def _carried(value: Any) -> bool:
    if isinstance(value, list):
        return all(_carried(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _carried(v) for k, v in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int, bool))
