"""Logs of a job for one connection: each byte once and in order, at the speed of the client.

``LogDelivery`` has the position of each log. If a client falls too far behind, the feed sends
``skip`` and continues near the end.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.logs import (
    ALL_TASKS,
    LIVE_PIECE,
    LogDelivery,
    LogReader,
    LogSource,
    check_log_names,
)
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import LogKey, parse_log_key
from submarine_runtime.translation import _
from submarine_server.channel.feed import ChannelServices, Credit, Feed, Send, int_in, job_id_in
from submarine_server.logs import log_source, unfollow

log = logging.getLogger(__name__)

#: Bytes of one message that is read by offset.
READ_PIECE = 256 << 10
#: Credit to wait for before a message is sent.
MIN_CREDIT = 16 << 10
#: Additional bytes by which a client may fall behind before data is skipped; bytes before the end
#: at which it continues.
MAX_BEHIND, RESUME_BEHIND = 8 << 20, 256 << 10


class LogFeed(Feed):
    """``{"kind": "log", "job", "tasks", "at", "tail"}``."""

    kind = "log"

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, request, send, credit)
        self._id = job_id_in(request)
        self._request = LogRequest.of(request)
        self._reported_delay: float | None = None
        #: Smallest backlog of the client since data was last skipped.
        self._min_behind = 1 << 62

    async def run(self) -> None:
        """See ``Feed``."""
        service, request = self.services.service, self._request
        source = log_source(service, self._id)
        delivery = LogDelivery(source, request.tasks, request.at, request.tail)
        source.add(delivery)
        try:
            delivery.open()
            await self._send_all(delivery)
        finally:
            unfollow(service, self._id, delivery)
            delivery.close()

    async def _send_all(self, delivery: LogDelivery) -> None:
        source = delivery.source
        while True:
            if source.failure is not None:
                raise source.failure
            await self._report_delay(source)
            key = delivery.next_log()
            if key is not None:
                await self._send_next(delivery, key)
            elif delivery.complete:
                return
            else:
                await delivery.wait()

    async def _report_delay(self, source: LogSource) -> None:
        """Send the delay of the data when it changes; None for a live connection."""
        now = None if source.behind is None else round(source.behind, 1)
        if now != self._reported_delay:
            self._reported_delay = now
            await self.send({"type": "behind", "seconds": now})

    async def _send_next(self, delivery: LogDelivery, key: LogKey) -> None:
        """Send the next piece of one log; the rest waits for its turn."""
        await self._wait_for_credit(delivery, key)
        known, begin = delivery.source.logs[key], delivery.cursor.of(key)
        left, allowed = known.end - begin, self.credit.left
        text = known.encoded(begin) if left <= allowed else ""
        if text:
            await self._send(delivery, key, left, text)
            return
        size = min(left, allowed)
        data: bytes | None = known.kept(begin, min(size, LIVE_PIECE))
        if not data and (reader := delivery.source.reader) is not None:
            data = await self._read(reader, key, begin, min(size, READ_PIECE))
        if data:
            await self._send(delivery, key, len(data), base64.b64encode(data).decode("ascii"))
        elif data is None:
            delivery.retry_later(key)
        elif (to := delivery.give_up(key)) is not None:
            await self._skip(delivery, key, to)

    async def _send(self, delivery: LogDelivery, key: LogKey, size: int, text: str) -> None:
        begin = delivery.cursor.of(key)
        delivery.cursor.move(key, begin + size)
        delivery.delivered(key)
        self.credit.spend(size)
        # Base64 needs no escapes, and the JSON encoder would scan it.
        head = {"type": "log", **key._asdict(), "offset": begin}
        names = json.dumps(head, separators=(",", ":"))[:-1]
        await self.send(f'{names},"data":"{text}"}}')

    async def _skip(self, delivery: LogDelivery, key: LogKey, to: int) -> None:
        begin = delivery.cursor.of(key)
        delivery.cursor.move(key, to)
        await self.send({"type": "skip", **key._asdict(), "offset": begin, "to": to})

    async def _wait_for_credit(self, delivery: LogDelivery, key: LogKey) -> None:
        """Wait for credit; skip data if the client fell too far behind meanwhile."""
        worth = min(MIN_CREDIT, delivery.unread(key))
        if self.credit.left >= worth:
            return
        self._min_behind = min(self._min_behind, _behind(delivery))
        await self.credit.wait(worth)
        if delivery.source.ended or _behind(delivery) - self._min_behind <= MAX_BEHIND:
            return
        for name in delivery.cursor.keys:
            if delivery.unread(name) > RESUME_BEHIND:
                known = delivery.source.logs[name]
                await self._skip(delivery, name, known.line_after(known.end - RESUME_BEHIND))
        self._min_behind = _behind(delivery)

    async def _read(self, reader: LogReader, key: LogKey, begin: int, size: int) -> bytes | None:
        """Read bytes by offset; empty if there are none, None if they cannot be read now."""
        try:
            chunk, _ = await self.services.service.call(reader.read, key, begin, size)
        except FileNotFoundError:
            return b""
        except (SubmarineError, TimeoutError) as error:
            log.debug("reading %s of %s: %s", key, self._id, error)
            return None
        return chunk.data if chunk.offset == begin else b""


def _behind(delivery: LogDelivery) -> int:
    """Return the number of bytes that were not sent yet."""
    return sum(delivery.unread(key) for key in delivery.cursor.keys)


#: Maximum number of positions in a request, and largest offset.
MAX_AT, MAX_OFFSET = 4096, (1 << 53) - 1
MAX_TAIL = 64 << 20


@dataclass(frozen=True)
class LogRequest:
    """A validated request for logs."""

    tasks: tuple[str, ...]
    at: Mapping[LogKey, int]
    tail: int | None

    @staticmethod
    def of(request: Mapping[str, Any]) -> LogRequest:
        """Validate the client's message.

        Raises
        ------
        UsageError
            If it is invalid.
        """
        tail = None if request.get("tail") is None else int_in(request, "tail", 0, MAX_TAIL)
        return LogRequest(_tasks(request.get("tasks")), _at(request.get("at")), tail)


def _tasks(names: Any) -> tuple[str, ...]:
    valid = isinstance(names, list) and 0 < len(names) <= MAX_MERGED_TASKS
    if not valid or not all(isinstance(name, str) for name in names):
        raise UsageError(
            _("`tasks` must be a list of 1 to {max_merged_tasks} names.").format(
                max_merged_tasks=MAX_MERGED_TASKS
            ),
            _('Give ["*"] for all tasks.'),
        )
    for name in names:
        if name != ALL_TASKS:
            check_log_names(name, None)
    return tuple(dict.fromkeys(names))


def _at(positions: Any) -> dict[LogKey, int]:
    if positions is None:
        return {}
    if not isinstance(positions, dict) or len(positions) > MAX_AT:
        raise UsageError(
            _("`at` must be an object of at most {max_at} logs.").format(max_at=MAX_AT)
        )
    found = {}
    for text, offset in positions.items():
        key = parse_log_key(text)
        valid = isinstance(offset, int) and not isinstance(offset, bool)
        if key is None or not text.isprintable() or not valid or not 0 <= offset <= MAX_OFFSET:
            raise UsageError(
                _("`at` contains {text!r}, which is not a position in a log.").format(
                    text=text[:60]
                ),
                _('One looks like "worker:0/e1-a1/stdout": 17.'),
            )
        found[key] = offset
    return found
