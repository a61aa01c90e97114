"""Read JSON of a newer writer: unknown fields are left out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Mapping, TypeVar

T = TypeVar("T")


def known_fields(cls: type[T], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of ``data`` that are fields of the dataclass ``cls``."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    return {key: value for key, value in data.items() if key in names}
