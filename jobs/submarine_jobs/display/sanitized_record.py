"""Sanitize a record for display: numbers of a plausible size, and limited numbers of items.

The types of the fields are those of the declaration. Texts are not escaped here.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, TypeVar

from submarine_jobs.model import JobView
from submarine_runtime.protocol import Event, JobRecord

T = TypeVar("T")
_MAX_ITEMS, _MAX_LINKS = 4096, 50
_MAX_NUMBER = 1e15


def sanitize_view(view: JobView) -> JobView:
    """Return the view with a sanitized record."""
    return replace(view, record=sanitize(view.record))


def sanitize(record: JobRecord) -> JobRecord:
    """Return a copy of ``record`` without implausible numbers and with only the newest events."""
    bounded = replace(
        record,
        events=[_without_data(event) for event in record.events[-_MAX_ITEMS:]],
        links=dict(list(record.links.items())[:_MAX_LINKS]),
    )
    return _sanitized(bounded) or bounded  # No number of a record is required.


def number(value: object) -> float | None:
    """Return ``value`` if it is a finite number of a plausible size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and abs(value) < _MAX_NUMBER else None


def _sanitized(item: T) -> T | None:
    """Return a copy with defaults for implausible numbers; None if such a number is required."""
    changed: dict[str, Any] = {}
    for field in fields(item):  # type: ignore[arg-type]
        value = getattr(item, field.name)
        if isinstance(value, list):
            changed[field.name] = _items(value[:_MAX_ITEMS])
        elif is_dataclass(value):
            changed[field.name] = _sanitized(value)
        elif isinstance(value, (int, float)) and type(value) is not bool and number(value) is None:
            if field.default is MISSING:
                return None
            changed[field.name] = field.default
    return replace(item, **changed)  # type: ignore[type-var]


def _items(values: list[T]) -> list[T]:
    found = [_sanitized(value) if is_dataclass(value) else value for value in values]
    return [value for value in found if value is not None]


def _without_data(event: Event) -> Event:
    epoch = number(event.data.get("epoch"))
    return replace(event, data={"epoch": epoch if isinstance(epoch, int) else None})
