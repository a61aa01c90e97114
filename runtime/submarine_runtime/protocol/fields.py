"""Reads of JSON that may come from a newer writer: what this reader does not know is left out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Mapping, TypeVar

T = TypeVar("T")


def known(cls: type[T], data: Mapping[str, Any]) -> dict[str, Any]:
    """Only the entries of ``data`` that the dataclass ``cls`` has: newer writers add fields."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    return {key: value for key, value in data.items() if key in names}
