"""The position of a reader in the logs of a job: a vector {task/attempt/stream: offset}.

Every sender and reader of logs uses it: agent, coordinator, command line, kernel and server. It
detects repeated bytes and gaps after an interruption, so that each byte is delivered once and in
order.
"""

from __future__ import annotations

import functools
from typing import Any, Iterable, Mapping, NamedTuple

from submarine_runtime.protocol import layout

#: Maximum number of entries in one request. The sender sends the logs of omitted entries again,
#: and the reader drops them.
MAX_AT = 400
#: Maximum length of a valid key.
_MAX_KEY = 64


class LogKey(NamedTuple):
    """One stream of one attempt of one task; written ``worker:0/e1-a1/stdout``."""

    task: str
    attempt: str
    stream: str

    def __str__(self) -> str:
        return f"{self.task}/{self.attempt}/{self.stream}"

    @property
    def order(self) -> tuple[int, int]:
        """Sort key of the attempt."""
        return attempt_order(self.attempt)


def parse_log_key(text: str) -> LogKey | None:
    """Parse a key; return None for any other text."""
    return _parse(text) if len(text) <= _MAX_KEY else None


@functools.lru_cache(1024)  # each line of a stream has a key
def _parse(text: str) -> LogKey | None:
    parts = text.split("/")
    if len(parts) != 3 or parts[2] not in layout.STREAMS or not layout.parse_attempt(parts[1]):
        return None
    try:
        layout.split_task(parts[0])
    except ValueError:
        return None
    return LogKey(*parts)


def attempt_order(attempt: str) -> tuple[int, int]:
    """Return the sort key of an attempt: epoch, then number; invalid names come first."""
    return layout.parse_attempt(attempt) or (0, 0)


class LogLine(NamedTuple):
    """A ``log`` or ``skip`` line of the live stream: the bytes ``begin`` to ``end`` of a log.

    ``data`` is their base64 text; None: the bytes are skipped.
    """

    key: LogKey
    begin: int
    end: int
    data: str | None


def read_log_line(line: Mapping[str, Any], attempt: str = layout.FIRST_ATTEMPT) -> LogLine | None:
    """Return the content of a line of the live stream; None for other types and unknown logs.

    Parameters
    ----------
    attempt
        The attempt if the line names none.

    Raises
    ------
    ValueError
        If the line is invalid. Whether ``data`` is base64 is not checked.
    """
    kind = line.get("type")
    if kind not in ("log", "skip"):
        return None
    try:
        named = line.get("attempt")
        valid = isinstance(named, str) and layout.parse_attempt(named)
        key = parse_log_key(
            "{}/{}/{}".format(line["task"], named if valid else attempt, line["stream"])
        )
        if key is None:
            return None
        begin = int(line["offset"])
        if kind == "skip":
            data, end = None, int(line["to"])
        else:
            data = line["data"]
            end = begin + len(data) * 3 // 4 - data[-2:].count("=")
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError("not a line of a log") from exc
    if begin < 0:
        raise ValueError("not a position in a log")
    return LogLine(key, begin, end, data)


class LogCursor:
    """The position of one reader or sender.

    Parameters
    ----------
    at
        Start offsets; the default is 0.
    """

    def __init__(self, at: Mapping[LogKey, int] | None = None) -> None:
        self._offsets: dict[LogKey, int] = dict(at or {})

    @classmethod
    def parse(cls, text: str) -> LogCursor:
        """Parse ``worker:0/e1-a1/stdout=17,...``; entries that name no log are ignored.

        Raises
        ------
        ValueError
            If the text has another form.
        """
        cursor = cls()
        for part in filter(None, text.split(",")):
            name, _, offset = part.rpartition("=")
            place, key = max(0, int(offset)), parse_log_key(name)
            if key is not None:
                cursor.move(key, place)
        return cursor

    def __str__(self) -> str:
        """Format for ``parse``: at most ``MAX_AT`` entries, those of the newest attempts."""
        ordered = sorted(self._offsets.items(), key=lambda item: item[0].order)
        return ",".join(f"{key}={offset}" for key, offset in ordered[-MAX_AT:])

    def __contains__(self, key: object) -> bool:
        return key in self._offsets

    def of(self, key: LogKey, default: int = 0) -> int:
        """Return the offset of the next byte."""
        return self._offsets.get(key, default)

    def move(self, key: LogKey, offset: int) -> None:
        """Set the offset of a log."""
        self._offsets[key] = offset

    def take(self, key: LogKey, begin: int, end: int) -> int:
        """Move behind the bytes ``begin`` to ``end``, never backward.

        Returns
        -------
        int
            Offset of the first byte that is new, at least ``begin``. ``end`` or more: none is new.
        """
        known = self._offsets.get(key, 0)
        if end > known:
            self._offsets[key] = end
        return max(begin, known)

    def gap(self, key: LogKey, begin: int) -> int:
        """Return the number of missing bytes if the next ones begin at ``begin``."""
        return max(0, begin - self._offsets.get(key, 0))

    @property
    def keys(self) -> list[LogKey]:
        """The logs that have an offset."""
        return list(self._offsets)

    def newest(self, task: str) -> str | None:
        """Return the newest attempt of a task that has an offset."""
        found = [key.attempt for key in self._offsets if key.task == task]
        return max(found, key=attempt_order, default=None)

    def query(self, tasks: Iterable[str], tail: int | None = None) -> dict[str, str | int]:
        """Return the query of ``GET /v1/stream`` that continues from this position.

        Parameters
        ----------
        tail
            Logs without an offset begin this many bytes before their end; None: at the start.
        """
        words: dict[str, str | int] = {name: self._alone(name, tail) for name in layout.STREAMS}
        words["tasks"] = ",".join(tasks)
        if tail is not None:
            words["tail"] = tail
        at = str(self)
        return {**words, "at": at} if at else words

    def _alone(self, stream: str, tail: int | None) -> int:
        """Return the offset for a single agent: that of the only task that was read.

        A negative offset counts from the end.
        """
        tasks = {key.task for key in self._offsets}
        if len(tasks) > 1:
            return 0
        task = tasks.pop() if tasks else ""
        key = LogKey(task, self.newest(task) or layout.FIRST_ATTEMPT, stream)
        return self.of(key, -(tail or 0))
