"""Read fields of the ResourceManager's JSON: text, numbers, lists, and sizes of resources.

Nothing in a response is trusted. A value of a wrong type counts as missing, and no function raises
an exception.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

#: Names of GPUs as a resource: of YARN's GPU plugin, and of the pluggable device framework. The
#: first that nodes offer is used.
GPU, NVIDIA_GPU = GPU_RESOURCES = ("yarn.io/gpu", "nvidia.com/gpu")
#: Maximum length of text that is displayed, and of a name that is compared.
MAX_TEXT, MAX_NAME = 120, 500
#: Maximum number of entries of a list.
MAX_ENTRIES = 100_000
_MAX_NUMBER = 1 << 63


class Size(NamedTuple):
    """Memory in MiB, virtual cores, GPUs."""

    memory: int = 0
    vcores: int = 0
    gpus: int = 0

    def plus(self, other: Size) -> Size:
        """Return the sum."""
        return Size(*(a + b for a, b in zip(self, other)))

    def minus(self, other: Size) -> Size:
        """Return the difference, at least 0."""
        return Size(*(max(0, a - b) for a, b in zip(self, other)))

    def times(self, count: int) -> Size:
        """Return ``count`` times this size."""
        return Size(*(a * count for a in self))

    def lacks(self, required: Size) -> tuple[str, ...]:
        """Return the resources of which this has less than ``required``, the scarcest first."""
        return tuple(
            kind
            for kind in ("gpus", "memory", "vcores")
            if getattr(required, kind) > getattr(self, kind)
        )

    def holds(self, required: Size) -> bool:
        """Return whether ``required`` fits into this size."""
        return not self.lacks(required)

    def fits(self, required: Size) -> int:
        """Return how many times ``required`` fits."""
        return min(
            (have // want for have, want in zip(self, required) if want > 0), default=1 << 20
        )


NOTHING = Size()


def total_size(sizes: Iterable[Size]) -> Size:
    """Return the sum of sizes."""
    total = NOTHING
    for one in sizes:
        total = total.plus(one)
    return total


def parse_size(raw: Any) -> Size:
    """Parse a resource in any form of the REST interface."""
    if not isinstance(raw, dict):
        return NOTHING
    counts = gpu_counts(raw)
    gpus = next(filter(None, (counts.get(name) for name in GPU_RESOURCES)), 0)
    return Size(as_int(raw.get("memory", raw.get("memorySize"))), as_int(raw.get("vCores")), gpus)


def gpu_counts(raw: Any) -> dict[str, int]:
    """Return the number of GPUs of a resource by the name under which they are offered."""
    return {
        str(info.get("name")): as_int(info.get("value"))
        for info in objects_in(raw, "resourceInformations", "resourceInformation")
        if info.get("name") in GPU_RESOURCES
    }


def optional_size(raw: Any) -> Size | None:
    """Parse a resource; None if it is missing or empty."""
    return parse_size(raw) if raw and isinstance(raw, dict) else None


def as_object(raw: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return raw if isinstance(raw, dict) else {}


def as_objects(raw: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list; some versions write a single object without its list."""
    if isinstance(raw, dict):
        return [raw]
    if not isinstance(raw, list):
        return []
    return [one for one in raw[:MAX_ENTRIES] if isinstance(one, dict)]


def objects_in(raw: Any, key: str, *keys: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list at ``raw[key][...]``; empty if there is none."""
    for each in (key, *keys):
        raw = as_object(raw).get(each)
    return as_objects(raw)


def as_int(raw: Any) -> int:
    """Return a number without its fraction; 0 if it is none, or too large for Java."""
    number = as_number(raw)
    return int(number) if number is not None and abs(number) <= _MAX_NUMBER else 0


def as_number(raw: Any) -> float | None:
    """Return a finite number; None if it is none."""
    if isinstance(raw, int):
        return raw
    try:
        number = float(raw)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) != float("inf") and number == number else None


def as_seconds(milliseconds: Any) -> float | None:
    """Return a time in seconds since the epoch; None if it is not set."""
    value = as_int(milliseconds)
    return value / 1000 if value > 0 else None


def as_text(raw: Any) -> str:
    """Return text as it is; empty for anything else. Do not display it."""
    return raw if isinstance(raw, str) else ""


def printable(raw: Any, limit: int = MAX_TEXT) -> str:
    """Return untrusted text, short and printable."""
    text = raw if isinstance(raw, str) else str(raw) if isinstance(raw, (int, float)) else ""
    if len(text) <= limit and text.isprintable():
        return text
    return "".join(char for char in text[: 8 * limit] if char.isprintable())[:limit]


def as_names(raw: Any) -> tuple[str, ...]:
    """Return the names of a list, such as node labels; without empty ones."""
    found = raw if isinstance(raw, list) else [raw] if isinstance(raw, str) else []
    return tuple(printable(name, MAX_NAME) for name in found[:MAX_ENTRIES] if name)
