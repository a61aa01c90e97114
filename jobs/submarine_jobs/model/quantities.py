"""Parse and format memory sizes, durations, counts and resource lists.

Memory is a whole number of MiB, time is in seconds.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import Resources
from submarine_runtime.translation import _

MAX_MEMORY = (1 << 31) - 1
MAX_COUNT = 1 << 20
MAX_SECONDS = 366 * 86400.0
_MEMORY = re.compile(
    r"^(\d{1,12}(?:\.\d{1,12})?)\s*([kmgt]?)(?:ib|i|b)?$", re.IGNORECASE | re.ASCII
)
_MIB = {
    "": Decimal(1),
    "k": 1 / Decimal(1024),
    "m": Decimal(1),
    "g": Decimal(1024),
    "t": Decimal(1 << 20),
}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|[smhd])", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_COUNT = re.compile(r"^\d{1,9}\Z", re.ASCII)
_RESOURCE_NAMES = {
    "memory": "memory",
    "memory-mb": "memory",
    "vcores": "vcores",
    "vcore": "vcores",
    "gpu": "gpus",
    "gpus": "gpus",
    "yarn.io/gpu": "gpus",
    "nvidia.com/gpu": "gpus",
}


def parse_memory(text: str) -> int:
    """Return MiB for ``8G``, ``8GB``, ``8g``, ``8192M``, ``8192`` (MiB) or ``0.5G``, rounded up.

    Raises
    ------
    UsageError
        If it is not a size, or zero.
    """
    match = _MEMORY.match(text.strip())
    # Reject a bare "b", which means bytes: 8B is more likely an error than 8 MiB.
    if not match or (not match[2] and not text.strip()[-1:].isdigit()):
        raise UsageError(
            _("{text!r} is not a size of memory.").format(text=text[:40]),
            _("Write 8G, 512M or 8192 (MiB)."),
        )
    mib = int((Decimal(match[1]) * _MIB[match[2].lower()]).to_integral_value(ROUND_CEILING))
    if not 1 <= mib <= MAX_MEMORY:
        raise UsageError(
            _("A memory of {text} is impossible.").format(text=text[:40]),
            _("Write for example 8G or 512M."),
        )
    return mib


def format_memory(mib: int) -> str:
    """Return ``8G`` for 8192 and ``1500M`` for 1500, which ``parse_memory`` reads."""
    return f"{mib // 1024}G" if mib % 1024 == 0 else f"{mib}M"


def parse_duration(text: str) -> float:
    """Return seconds for ``90``, ``90s``, ``2h``, ``1h30m``, ``1d`` or ``0.5h``.

    Raises
    ------
    UsageError
        If it is not a duration, zero, or longer than a year.
    """
    plain = text.strip().lower()
    if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", plain, re.ASCII):
        plain += "s"
    parts = _DURATION.findall(plain)
    if not parts or "".join(number + unit for number, unit in parts) != plain:
        raise UsageError(
            _("{text!r} is not a duration.").format(text=text[:40]),
            _("Write 90s, 15m, 2h, 1h30m or 1d."),
        )
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(
            _("A time of {text} is impossible.").format(text=text[:40]),
            _("It must be longer than 0 and at most a year."),
        )
    return seconds


def format_duration(seconds: float) -> str:
    """Return ``1h30m`` for 5400.0, which ``parse_duration`` reads; exact to the millisecond."""
    milliseconds = round(seconds * 1000)
    text = ""
    for unit, size in (("d", 86400000), ("h", 3600000), ("m", 60000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def parse_timeout(text: str) -> float:
    """Like ``parse_duration``, and 0 for ``never``.

    Raises
    ------
    UsageError
        If it is neither a duration nor ``never``.
    """
    return 0.0 if text.strip().lower() in ("never", "0") else parse_duration(text)


def format_timeout(seconds: float) -> str:
    """Return ``never`` for 0, else like ``format_duration``."""
    return format_duration(seconds) if seconds else "never"


def parse_count(text: str, what: str, least: int = 0) -> int:
    """Parse a whole number from ``least``; ``what`` names it in the error message."""
    plain = text.strip()
    if not _COUNT.match(plain) or not plain.isascii() or not least <= int(plain) <= MAX_COUNT:
        raise UsageError(
            _("{what} must be a whole number from {least}, not {text!r}.").format(
                what=what, least=least, text=text[:40]
            )
        )
    return int(plain)


def parse_resources(text: str) -> dict[str, int]:
    """Parse ``memory=8G,vcores=2,gpu=2`` as {"memory": 8192, "vcores": 2, "gpus": 2}.

    Raises
    ------
    UsageError
        For an unknown or repeated resource, or a wrong amount.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        key = _RESOURCE_NAMES.get(name.strip().lower())
        if not equals or key is None:
            raise UsageError(
                _("{part!r} is not a resource.").format(part=part.strip()[:40]),
                _("Write memory=8G,vcores=2,gpu=2."),
            )
        if key in found:
            raise UsageError(
                _("The resource {name} is given twice in {text!r}.").format(
                    name=name.strip(), text=text[:80]
                )
            )
        if key == "memory":
            found[key] = parse_memory(amount)
        else:
            found[key] = parse_count(amount, name.strip(), 1 if key == "vcores" else 0)
    return found


def format_resources(resources: Resources) -> str:
    """Return ``memory=8G,vcores=2,gpu=2``, always with all three."""
    memory = format_memory(resources.memory)
    return f"memory={memory},vcores={resources.vcores},gpu={resources.gpus}"
