"""One follower of a distributed job: its record, its events, and the logs of many tasks.

Opens one connection to each watched agent's own stream and passes its lines on, at the pace of
the reader: while that is slow nothing is read from the agents, which then skip. So memory is
bounded by one buffer a task. Runs in the viewer's thread, while somebody listens and only then.
"""

from __future__ import annotations

import json
import selectors
import ssl
import threading
import time
from typing import Any, Callable, Mapping
from urllib.parse import urlencode

from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server.agent_stream import AgentError, Feed, Source
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.protocol.link_validation import read_line

POLL = 0.1
STATUS_INTERVAL = 0.5
#: Most tasks that one viewer follows at once; of the others it sees what is shipped.
MAX_FOLLOWED = 256
RETRY_SECONDS = 2.0
#: Seconds that agents' last lines may take once the job has ended.
LAST_LINES = 1.0


class Follow:
    """One follower.

    Parameters
    ----------
    write
        Sends bytes; blocks, and raises OSError when the reader is gone.
    ended
        Set once the final record is published.
    """

    def __init__(
        self,
        write: Callable[[bytes], Any],
        status: JobStatus,
        sources: Callable[[], dict[str, Source]],
        token: str,
        context: ssl.SSLContext,
        ended: threading.Event,
    ) -> None:
        self._write, self._status, self._sources = write, status, sources
        self._token, self._context, self._ended = token, context, ended
        self._selector = selectors.DefaultSelector()
        self._feeds: dict[str, Feed] = {}
        self._at: dict[str, int] = {}
        self._retry: dict[str, float] = {}
        self._version, self._next_status, self._next_feeds = -1, 0.0, 0.0
        self._last_sent = time.monotonic()

    def run(self, events: int, tasks: str, at: Mapping[str, int], tail: int | None) -> None:
        """Send until the job has ended.

        Parameters
        ----------
        tasks
            A comma list, or ``*`` for all.
        at
            ``worker:0/e1-a1/stdout`` -> offset from which that log is wanted.
        tail
            For logs not in ``at``: begin so many bytes before the end; None: at the beginning.
        """
        self._events, self._tail, self._at = events, tail, dict(at)
        self._wanted = None if tasks == "*" else frozenset(tasks.split(","))
        try:
            until: float | None = None
            while until is None or (self._feeds and time.monotonic() < until):
                self._send_status()
                self._send_events()
                if until is None:
                    self._open_feeds()
                self._pass_on(POLL)
                if self._ended.is_set() and until is None:
                    until = time.monotonic() + LAST_LINES
            self._send_events()
            self._line({"type": "end", "record": self._status.to_json()})
        finally:
            for feed in list(self._feeds.values()):
                self._drop(feed)
            self._selector.close()

    def _line(self, content: Mapping[str, Any]) -> None:
        self._write(json.dumps(content).encode() + b"\n")
        self._last_sent = time.monotonic()

    def _send_status(self) -> None:
        now, version = time.monotonic(), self._status.version
        if version != self._version and now >= self._next_status:
            record = self._status.to_json(events=False)
            # A record of a thousand tasks is no small thing to say twice a second.
            pause = max(STATUS_INTERVAL, len(record["tasks"]) / 100)
            self._version, self._next_status = version, now + pause
            self._line({"type": "status", "record": record})
        if now - self._last_sent >= wire.PING_SECONDS:
            self._line({"type": "ping"})

    def _send_events(self) -> None:
        if self._events < self._status.event_count:
            for event in self._status.events_after(self._events):
                self._line({"type": "event", "event": event})
                self._events += 1

    def _open_feeds(self) -> None:
        now = time.monotonic()
        if now < self._next_feeds:
            return
        self._next_feeds = now + 0.2
        sources = self._sources()
        for feed in list(self._feeds.values()):
            if sources.get(feed.task, feed.source) != feed.source:
                # Another attempt: what the old one still had to say is in its shipped log. An
                # agent that only goes is heard to its end.
                self._drop(feed)
        for task, source in sources.items():
            wanted = self._wanted is None or task in self._wanted
            if not wanted or task in self._feeds or len(self._feeds) >= MAX_FOLLOWED:
                continue
            if source.attempt and now >= self._retry.get(task, 0.0):
                self._retry[task] = now + RETRY_SECONDS
                self._open(task, source)

    def _open(self, task: str, source: Source) -> None:
        attempt = attempt_name(source.epoch, source.attempt)
        query: dict[str, Any] = {"events": 1 << 30, "attempt": attempt}
        for stream in ("stdout", "stderr"):
            offset = self._at.get(f"{task}/{attempt}/{stream}")
            if offset is None and self._tail is not None:
                offset = -self._tail  # so far from its end
            query[stream] = offset or 0
        try:
            feed = Feed(task, source, self._context, self._token, urlencode(query))
        except AgentError:
            return
        self._feeds[task] = feed
        self._selector.register(feed.channel.sock, feed.mask, feed)

    def _drop(self, feed: Feed) -> None:
        if self._feeds.get(feed.task) is feed:
            del self._feeds[feed.task]
            self._selector.unregister(feed.channel.sock)
            feed.channel.close()

    def _pass_on(self, seconds: float) -> None:
        if not self._feeds:
            self._ended.wait(seconds)
            return
        for key, mask in self._selector.select(seconds):
            feed: Feed = key.data
            try:
                self._serve(feed, mask)
            except AgentError:
                self._drop(feed)

    def _serve(self, feed: Feed, mask: int) -> None:
        for line in feed.serve(mask):
            self._pass_line(feed, line)
        if feed.new_mask() and feed.channel.open:
            self._selector.modify(feed.channel.sock, feed.mask, feed)

    def _pass_line(self, feed: Feed, data: bytes) -> None:
        try:
            line = read_line(data)
            kind = line["type"]
            if kind not in ("log", "skip"):
                return
            own = attempt_name(feed.source.epoch, feed.source.attempt)
            attempt = str(line.setdefault("attempt", own))
            line["task"] = feed.task
            size = (
                len(line["data"]) * 3 // 4 - line["data"][-2:].count("=") if "data" in line else 0
            )
            end = int(line["to"]) if kind == "skip" else int(line["offset"]) + size
            self._at[f"{feed.task}/{attempt}/{line['stream']}"] = end
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise AgentError from exc
        self._line(line)


def positions_of(text: str) -> dict[str, int]:
    """``worker:0/e1-a1/stdout=17,...`` as a mapping.

    Raises
    ------
    ValueError
        If it is nothing of the kind.
    """
    positions = {}
    for part in filter(None, text.split(",")):
        key, _, offset = part.rpartition("=")
        positions[key] = max(0, int(offset))
    return positions
