"""One follower of a running job: newline-delimited JSON until the job has ended.

Reads new data from the log files at the follower's pace and holds at most one piece of them, so a
slow follower costs no memory. A follower that is too far behind gets a ``skip`` line. Polling stops
with the connection.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from typing import Any, Callable, Mapping

from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.protocol import LogCursor, LogKey, wire
from submarine_runtime.protocol.layout import STREAMS
from submarine_runtime.record import Status

POLL = 0.04
STATUS_INTERVAL = 0.5
#: Number of bytes behind after which a slow follower skips data.
MAX_BEHIND = 8 << 20
KEPT_BEHIND = 1 << 20
CHECK_INTERVAL = 2.0
#: Seconds to send one line after which its follower counts as stuck.
STUCK_SECONDS = 1.0


class FollowerStream:
    """One follower.

    Parameters
    ----------
    write
        Sends bytes; blocks, and raises OSError after the follower has disconnected.
    ended
        Set after the final record has been published.
    events
        Number of events that the follower has.
    start
        Stream -> offset of the first byte to send; negative: from the end.
    """

    def __init__(
        self,
        write: Callable[[bytes], Any],
        status: Status,
        task: str,
        logs: LogFiles,
        ended: threading.Event,
        events: int,
        start: Mapping[str, int],
    ) -> None:
        self._write = write
        self._status = status
        self._task = task
        self._logs = logs
        self._attempt = logs.newest
        self._ended = ended
        self._events = max(0, events)
        self._cursor = LogCursor()
        for stream, offset in start.items():
            begin = offset if offset >= 0 else max(0, self._length(stream) + offset)
            self._cursor.move(self._key(stream), begin)
        self._behind = dict.fromkeys(STREAMS, 0)
        self._next_check = time.monotonic() + CHECK_INTERVAL
        self._stuck = False
        self._version = -1
        self._next_status = 0.0
        self._last_sent = time.monotonic()

    def run(self) -> None:
        """Send until the job has ended."""
        while True:
            ended = self._ended.is_set()
            if self._send_status() | self._send_events() | self._send_logs(ended):
                continue
            if ended:
                self._line({"type": "end", "record": self._status.to_json()})
                return
            if time.monotonic() - self._last_sent >= wire.PING_SECONDS:
                self._line({"type": "ping"})
            self._ended.wait(POLL)

    def _line(self, content: dict[str, Any]) -> None:
        began = time.monotonic()
        self._write(json.dumps(content).encode() + b"\n")
        self._last_sent = time.monotonic()
        self._stuck = self._stuck or self._last_sent - began > STUCK_SECONDS

    def _send_status(self) -> bool:
        version = self._status.version
        now = time.monotonic()
        if version == self._version or now < self._next_status:
            return False
        self._version, self._next_status = version, now + STATUS_INTERVAL
        self._line({"type": "status", "record": self._status.to_json(events=False)})
        return True

    def _send_events(self) -> bool:
        if self._events >= self._status.event_count:
            return False
        for event in self._status.events_after(self._events):
            self._line({"type": "event", "event": event})
            self._events += 1
        return True

    def _send_logs(self, ended: bool) -> bool:
        lengths = {stream: self._length(stream) for stream in STREAMS}
        self._catch_up(lengths, ended)
        sent = [self._send_log(stream, length) for stream, length in lengths.items()]
        return any(sent) or self._follow_next()

    def _follow_next(self) -> bool:
        """Continue with the task's next attempt in this container, if there is one."""
        if self._attempt == self._logs.newest:
            return False
        self._attempt = self._logs.newest
        self._behind = dict.fromkeys(STREAMS, 0)
        return True

    def _key(self, stream: str) -> LogKey:
        return LogKey(self._task, self._attempt, stream)

    def _path(self, stream: str) -> str:
        return (self._logs.paths(self._attempt) or {})[stream]

    def _length(self, stream: str) -> int:
        try:
            return os.stat(self._path(stream)).st_size
        except (OSError, KeyError):
            return 0

    def _send_log(self, stream: str, length: int) -> bool:
        key = self._key(stream)
        offset = self._cursor.of(key)
        if length <= offset:
            return False
        with open(self._path(stream), "rb") as file:
            file.seek(offset)
            data = file.read(min(wire.MAX_LINE_LOG_BYTES, length - offset))
        self._cursor.move(key, offset + len(data))
        self._line(
            {
                "type": "log",
                **key._asdict(),
                "offset": offset,
                "data": base64.b64encode(data).decode(),
            }
        )
        return bool(data)

    def _catch_up(self, lengths: Mapping[str, int], ended: bool) -> None:
        """Skip data for a follower that is far behind, and stuck or not catching up."""
        now = time.monotonic()
        hurry = ended or self._stuck
        if now < self._next_check and not hurry:
            return
        self._next_check, self._stuck = now + CHECK_INTERVAL, False
        for stream, length in lengths.items():
            key = self._key(stream)
            offset, to = self._cursor.of(key), length - KEPT_BEHIND
            behind, before = length - offset, self._behind[stream]
            self._behind[stream] = behind
            if behind <= MAX_BEHIND or (not hurry and (not before or behind < before)):
                continue
            self._cursor.move(key, to)
            self._line({"type": "skip", **key._asdict(), "offset": offset, "to": to})
