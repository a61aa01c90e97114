"""Read a failed program's traceback and map it to cells.

The user's code wrote everything that is read here, so every field is limited and checked.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from submarine_runtime.protocol import MAP_PATH, Failure, SourceMap, TracebackFrame

MAX_FILE = 1 << 20
MAX_STDERR = 1 << 18
MAX_TEXT = 1 << 16
MAX_FRAMES = 100
_HEADER = b"Traceback (most recent call last):"
_FRAME = re.compile(r'^  File "([^"\n]{1,4096})", line (\d{1,9})(?:, in (.{1,500}))?$')
#: Python's lines between the traceback of a cause and that of its consequence.
_CHAINED = (
    b"\nThe above exception was the direct cause of the following exception:\n\n",
    b"\nDuring handling of the above exception, another exception occurred:\n\n",
)
#: Of a program that C++ code aborts: an exception that is not caught, as that of NCCL's watchdog,
#: and the fatal messages of glog and abseil, as those of JAX's coordination service.
_ABORT = re.compile(
    rb"^terminate called after throwing an instance of '([^'\n]{1,200})'\n +what\(\): +(.+)"
    rb"|^(?:[\d-]{10} [\d:.]+: )?F(?:\d{4,8} [\d:.]+ +\d+)? ?[\w./-]{1,200}:\d+\] (.+)",
    re.MULTILINE,
)
_ERROR = re.compile(r"^([A-Za-z_][\w.]{0,200})(?:: (.*))?$")


def load_failure(path: str) -> tuple[Failure, str] | None:
    """Return the launcher's failure and its kind (``error memory import disk_full exit``)."""
    data = _read_json(path)
    if not isinstance(data, dict):
        return None
    frames = []
    for frame in _list(data.get("frames"))[:MAX_FRAMES]:
        if isinstance(frame, dict) and isinstance(frame.get("line"), int):
            file, function, code = (_text(frame.get(k), 4096) for k in ("file", "function", "code"))
            frames.append(TracebackFrame(file, frame["line"], function, code))
    failure = Failure(
        _text(data.get("type"), 300) or "Exception",
        _text(data.get("message"), 4096),
        frames,
        _text(data.get("text"), MAX_TEXT + 16),
        _seconds(data.get("time")),
    )
    return failure, _text(data.get("kind"), 20)


def load_torch_error(path: str) -> Failure | None:
    """Return the exception in an error file of ``torch.distributed.elastic``, if there is one.

    PyTorch writes it for functions with its decorator ``record``, and torchrun for the process that
    failed first.
    """
    data = _read_json(path)
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        return None
    name, _separator, text = _text(message.get("message"), 4096).partition(": ")
    extra = message.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    stack = _text(extra.get("py_callstack"), MAX_TEXT)
    found = _parse_traceback(stack.encode())
    failure = found or Failure(name[:300] or "Exception", text, [], stack)
    failure.time = _seconds(extra.get("timestamp"))
    return failure


def parse_stderr(path: str, label: str = "") -> Failure | None:
    """Return the last Python traceback in the last 256 KiB of a log, in linear time.

    Its text begins with the tracebacks of its causes. Without a traceback: the message with which
    C++ code has aborted the program.

    Parameters
    ----------
    label
        Of the lines of one process; empty: lines have no labels.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - MAX_STDERR))
            tail = file.read(MAX_STDERR)
    except OSError:
        return None
    lines = _lines_of(tail, label)
    return _parse_traceback(lines) or _parse_abort(lines)


def _parse_abort(tail: bytes) -> Failure | None:
    found = list(_ABORT.finditer(tail))
    if not found:
        return None
    name, what, fatal = (part.decode("utf-8", "replace") for part in found[-1].groups(b""))
    text = found[-1].group().decode("utf-8", "replace")[:MAX_TEXT]
    return Failure(name.replace("::", ".") or "Abort", (what or fatal)[:4096], [], text)


def _lines_of(text: bytes, label: str) -> bytes:
    """Return the lines of one process without its label."""
    if not label:
        return text
    mark = f"[{label}] ".encode()
    lines = text.split(b"\n")
    return b"\n".join(line[len(mark) :] for line in lines if line.startswith(mark))


def _parse_traceback(tail: bytes) -> Failure | None:
    start = tail.rfind(b"\n" + _HEADER) + 1
    if start == 0 and not tail.startswith(_HEADER):
        return None
    lines = tail[start:].decode("utf-8", "replace").split("\n")
    frames: list[TracebackFrame] = []
    for number, line in enumerate(lines[1:], 1):
        frame = _FRAME.match(line)
        if frame:
            frames.append(TracebackFrame(frame[1], int(frame[2]), frame[3] or ""))
        elif line.startswith("    ") and frames and not frames[-1].code:
            frames[-1].code = line.strip()[:4096]
        elif line[:1] not in (" ", ""):
            error = _ERROR.match(line)
            if not error:
                return None
            causes = _causes(tail, start).decode("utf-8", "replace")[: MAX_TEXT // 2]
            text = causes + "\n".join(lines[: number + 1])[: MAX_TEXT - len(causes)]
            return Failure(error[1], (error[2] or "")[:4096], frames[-MAX_FRAMES:], text)
    return None


def _causes(tail: bytes, start: int) -> bytes:
    """Return the tracebacks that are chained to the one at ``start``."""
    begin = start
    while tail.endswith(_CHAINED, 0, begin):
        before = tail.rfind(b"\n" + _HEADER, 0, begin) + 1
        if before == 0 and not tail.startswith(_HEADER):
            break
        begin = before
    return tail[begin:start]


def load_source_map(program_directory: str) -> SourceMap:
    """Return the bundle's source map; an empty one if it cannot be read."""
    try:
        return SourceMap.from_json(_read_json(os.path.join(program_directory, MAP_PATH)))
    except ValueError:
        return SourceMap({})


def name_cells(failure: Failure, program_directory: str) -> Failure:
    """Make paths of the bundle's files relative to its root, and add cells if known."""
    cells = load_source_map(program_directory)
    root = os.path.realpath(program_directory)
    failure.text = cells.map_traceback(failure.text, root)
    for frame in failure.frames:
        absolute = os.path.realpath(os.path.join(root, frame.file))
        if not absolute.startswith(root + os.sep):
            continue
        frame.file = os.path.relpath(absolute, root)
        position = cells.lookup(frame.file, frame.line)
        if position is not None:
            frame.cell, frame.cell_id, frame.cell_line = position
    return failure


def last_line(path: str, label: str = "") -> str:
    """Return the last line of a log that is not blank, at most 300 characters.

    Parameters
    ----------
    label
        Of the lines of one process; empty: any line.
    """
    end = 1 << 16 if label else 4096
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - end))
            lines = _lines_of(file.read(end), label).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def _read_json(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            return json.loads(file.read(MAX_FILE * 16))
    except (OSError, ValueError, RecursionError):
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _seconds(value: Any) -> float | None:
    """Return seconds since the epoch, which PyTorch writes as a text."""
    if isinstance(value, str) and value.isdigit():
        value = int(value[:12])
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e11 else None


def _text(value: Any, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""
