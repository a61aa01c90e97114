"""Parse and validate the JSON lines of the link; any process with the token may be the sender.

``read_link_line`` limits nesting, numbers and text. ``check_agent_line`` and ``check_order`` check
the types of the fields that a receiver uses. Add each new field of ``protocol.link`` to the tables
here; fields and types of line that are not listed are not checked.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Mapping, NoReturn

#: Maximum nesting of a line; the record of a job has four levels.
MAX_DEPTH = 32
#: Maximum number of digits of an integer: 64 bits.
MAX_DIGITS = 19
MAX_PORT = 65535
#: Maximum number of entries of a member's ``extra``, and length of each: every task receives them.
MAX_EXTRA, MAX_EXTRA_TEXT = 16, 256
_MAX_PROCESSES = 4096
_Check = Callable[[Any], bool]


def read_link_line(data: bytes) -> dict[str, Any]:
    """Parse one line: a JSON object.

    Raises
    ------
    ValueError
        If it is not UTF-8, no JSON object, nested deeper than ``MAX_DEPTH``, or has a number that
        is not finite or has too many digits.
    """
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except RecursionError as exc:
        raise ValueError("the line is nested too deeply") from exc
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")
    # Most lines are heartbeats: without these bytes no surrogate is alone and nothing is nested.
    if b"\\u" in data or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        value = json_safe(value)
    checked: dict[str, Any] = value
    return checked


def json_safe(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Convert a value to one that ``read_link_line`` accepts.

    Lone surrogates become question marks; infinities, NaN and integers of more than 63 bits None.

    Raises
    ------
    ValueError
        If it is nested deeper than ``depth``.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, (dict, list, tuple)):
        if depth <= 0:
            raise ValueError("the line is nested too deeply")
        if isinstance(value, dict):
            return {json_safe(str(key)): json_safe(item, depth - 1) for key, item in value.items()}
        return [json_safe(item, depth - 1) for item in value]
    return value


def check_agent_line(line: Mapping[str, Any]) -> None:
    """Check a line from an agent.

    Raises
    ------
    ValueError
        If a required field is absent, or a field has the wrong type; the message names the field.
    """
    _check(line, _REQUIRED, _AGENT_FIELDS)


def check_order(line: Mapping[str, Any]) -> None:
    """Check a line from the coordinator; raise as ``check_agent_line`` does."""
    _check(line, {"ack": ("n",), "start": ("epoch", "attempt", "members")}, _ORDER_FIELDS)


def _check(
    line: Mapping[str, Any],
    required: Mapping[str, tuple[str, ...]],
    fields: Mapping[str, _Check],
) -> None:
    kind = line.get("type")
    if not isinstance(kind, str):
        raise ValueError("the line has no type")
    for name in required.get(kind, ()):
        if line.get(name) is None:
            raise ValueError(f"a line of type {kind[:20]!r} has no {name!r}")
    for name, value in line.items():
        check = fields.get(name)
        if check is not None and value is not None and not check(value):
            raise ValueError(f"{name!r} has the wrong form in a line of type {kind[:20]!r}")


def _integer(text: str) -> int | None:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ValueError("an integer has too many digits")
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


#: ``json.loads`` with these functions creates a decoder for each line, twice the time of decoding.
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=_no_number)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(_text(item) for item in value)


def _port(value: Any) -> bool:
    return _whole(value) and 0 <= value <= MAX_PORT


def _ports(value: Any) -> bool:
    return isinstance(value, list) and all(_port(item) for item in value)


def _lengths(value: Any) -> bool:
    return _object(value) and all(_whole(item) and item >= 0 for item in value.values())


def _files(value: Any) -> bool:
    return isinstance(value, list) and all(
        _object(item) and _text(item.get("path")) and _whole(item.get("size")) for item in value
    )


def _numbers_of_run(value: Any) -> bool:
    return _object(value) and _whole(value.get("epoch")) and _whole(value.get("attempt"))


def _extra(value: Any) -> bool:
    return (
        _object(value)
        and len(value) <= MAX_EXTRA
        and all(
            len(key) <= MAX_EXTRA_TEXT
            and (item is None or (_text(item) and len(item) <= MAX_EXTRA_TEXT))
            for key, item in value.items()
        )
    )


def _whole_list(value: Any) -> bool:
    return isinstance(value, list) and all(_whole(item) for item in value)


def _steps(value: Any) -> bool:
    return _object(value) and all(_whole_list(item) for item in value.values())


def _names(value: Any) -> bool:
    return _object(value) and all(_texts(item) for item in value.values())


def _points(value: Any) -> bool:
    return isinstance(value, list) and all(_whole_list(item) and len(item) == 3 for item in value)


def _member(value: Any) -> bool:
    texts = ("task", "role", "host", "address")
    return (
        _object(value)
        and all(_text(value.get(name)) for name in texts)
        and _whole(value.get("index"))
        and (value.get("ports") is None or _ports(value["ports"]))
    )


_REQUIRED = {
    "heartbeat": ("n",),
    "register": ("seat", "nonce"),
    "state": ("state",),
    "ports": ("ports",),
    "event": ("kind",),
    "saved": ("id",),
    "snapshot": ("epoch", "attempt", "kept"),
    "synced": ("epoch", "attempt"),
    "idle": ("epoch", "attempt", "what", "seconds"),
}
_AGENT_FIELDS: dict[str, _Check] = {
    **dict.fromkeys(
        (
            "address",
            "container_id",
            "detail",
            "error",
            "host",
            "id",
            "kind",
            "log_url",
            "network",
            "node",
            "nonce",
            "reason",
            "retry",
            "seat",
            "state",
            "task",
            "waiting",
            "what",
        ),
        _text,
    ),
    **dict.fromkeys(
        ("answered", "attempt", "epoch", "exit_code", "n", "number", "pid", "round", "signal"),
        _whole,
    ),
    **dict.fromkeys(
        (
            "cpu_seconds",
            "failed",
            "finished",
            "gpu_memory",
            "gpu_percent",
            "memory_now",
            "memory_peak",
            "progress",
            "seconds",
            "started",
        ),
        _number,
    ),
    "agent_port": _port,
    "digests": _lengths,
    "kept": _whole_list,
    "steps": _steps,
    "needs": _names,
    "world": _whole,
    "damaged": _text,
    "unrestored": _flag,
    "data": _object,
    "extra": _extra,
    "failure": _object,
    "gpus": lambda value: _texts(value) or _whole(value),
    "hints": _texts,
    "logs": _lengths,
    "missing": lambda value: _texts(value) or _text(value),
    "outputs": _files,
    "ports": _ports,
    "processes": lambda value: _whole(value) and 0 < value <= _MAX_PROCESSES,
    "running": _numbers_of_run,
}
_ORDER_FIELDS: dict[str, _Check] = {
    **dict.fromkeys(("id", "name", "why"), _text),
    **dict.fromkeys(("attempt", "epoch", "n", "round"), _whole),
    **dict.fromkeys(("grace", "heartbeat", "lost_after"), _number),
    "members": lambda value: isinstance(value, list) and all(_member(item) for item in value),
    "alone": _flag,
    "older": _flag,
    "outputs": _flag,
    "points": _points,
    "restore": _object,
}
