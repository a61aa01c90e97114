"""Output of a paragraph: current contents, contents on the server, and their synchronization.

``output_writer`` sends the changes of interpreters a few times a second. The server does not save
text that is appended, so complete messages are sent and saved afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from submarine_runtime.translation import _
from submarine_zeppelin.interface import (
    Context,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    fit,
    last_lines,
)
from submarine_zeppelin.thrift import EventClient

#: Seconds after which appended text is sent as a complete message and saved.
SAVE_EVERY = 3.0


class ParagraphOutput(Output):
    """The output of one run of a paragraph.

    Parameters
    ----------
    changed
        Called after each change.
    limit
        Returns the maximum number of characters.
    """

    def __init__(
        self,
        events: EventClient,
        context: Context,
        changed: Callable[[ParagraphOutput], None],
        limit: Callable[[], int],
    ) -> None:
        self.context = context
        self._events = events
        self._changed = changed
        self._limit = limit
        self._lock = threading.Lock()
        self._parts: list[_Part] = []
        self._closed = ""
        self._sending = threading.Lock()
        #: Contents on the server; None if unknown.
        self._sent: list[Message] | None = None
        self._unsaved = False
        self._saved_at = 0.0
        #: Contents that the run returned as its result, until they change.
        self._result: list[Message] | None = None
        self._released = False

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the output; see ``Output``."""
        self._check()
        with self._lock:
            self._parts = [_Part(one.kind, one.data) for one in messages]
            self._released = False
        self._changed(self)

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Append text; see ``Output``."""
        self._check()
        if not text:
            return
        with self._lock:
            if self._released:
                self._parts = [_Part(Kind.TEXT, _("[earlier output is not available]\n"))]
                self._released = False
            if not self._parts or self._parts[-1].kind is not kind:
                self._parts.append(_Part(kind, ""))
            self._parts[-1].add(text, self._limit())
        self._changed(self)

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Set the job's link; see ``Output``."""
        self._check()
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"links must be http or https, not {url[:80]!r}")
        self._events.link(self.context.note_id, self.context.paragraph_id, label, url, tooltip)

    @property
    def messages(self) -> list[Message]:
        """Current contents within the limit."""
        with self._lock:
            messages = [part.message() for part in self._parts]
        return fit(messages, self._limit())

    def clear(self) -> None:
        """Remove all contents, on the server too."""
        with self._lock:
            self._parts = []
        with self._sending:
            self._events.update_all(self.context.note_id, self.context.paragraph_id, [])
            self._sent, self._unsaved = [], True

    def set_result(self, messages: Sequence[Message]) -> None:
        """Set contents that the run returns as its result, so that they need not be sent.

        After a change all contents are sent, because the server's checkpoint omits results.
        """
        with self._sending:
            with self._lock:
                self._parts = [_Part(one.kind, one.data) for one in messages]
            self._sent, self._result = None, self.messages

    def close(self, reason: str) -> None:
        """Close the output: further calls raise ``ParagraphGoneError`` with the reason."""
        self._closed = reason

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return bool(self._closed)

    @property
    def size(self) -> int:
        """Number of characters in memory."""
        with self._lock:
            held = sum(part.size for part in self._parts)
        with self._sending:
            # The sent contents are mostly the same strings.
            sent = sum(len(one.data) for one in self._sent or self._result or ())
        return max(held, sent)

    @property
    def released(self) -> bool:
        """Whether ``release`` has discarded the contents."""
        return self._released

    def release(self) -> None:
        """Discard contents that the server has saved. Later contents replace all of them."""
        with self._sending, self._lock:
            self._parts, self._sent, self._result, self._released = [], None, None, True

    def invalidate(self) -> None:
        """Send all contents the next time, because the server may have lost them."""
        self._sent = None

    def flush(self, *, save: bool = False) -> bool:
        """Send the changes to the server.

        Returns
        -------
        bool
            Whether all contents are saved. If not, flush again after ``SAVE_EVERY`` seconds.

        Raises
        ------
        ServerUnavailableError, EventRefusedError
            If a call fails. The contents on the server are then unknown.
        """
        with self._sending:
            if self.closed or self._released:
                return True
            current = self.messages
            if current == self._result:
                return True
            previous, self._sent, self._result = self._sent, None, None
            only_appended = self._send(current, previous)
            self._sent = current
            due = save or time.monotonic() >= self._saved_at + SAVE_EVERY
            if only_appended and not due:
                return False
            if self._unsaved:
                self._save(current)
            return True

    def _send(self, current: list[Message], previous: list[Message] | None) -> bool:
        """Send the difference, and return whether only text was appended at the end."""
        note, paragraph = self.context.note_id, self.context.paragraph_id
        if previous == current:
            return self._unsaved and self._streams(current)
        self._unsaved = True
        if previous is None or len(current) < len(previous):
            self._events.update_all(note, paragraph, current)
            return False
        only_appended = True
        for index, message in enumerate(current):
            before = previous[index] if index < len(previous) else None
            if before == message:
                continue
            last = index == len(current) - 1
            if last and before is not None and _is_extended(before, message):
                self._events.append(note, paragraph, index, message.data[len(before.data) :])
            else:
                self._events.update(note, paragraph, index, message)
                only_appended = only_appended and last and message.kind is Kind.TEXT
        return only_appended

    def _streams(self, current: list[Message]) -> bool:
        return bool(current) and current[-1].kind is Kind.TEXT

    def _save(self, current: list[Message]) -> None:
        note, paragraph = self.context.note_id, self.context.paragraph_id
        if self._streams(current):
            self._events.update(note, paragraph, len(current) - 1, current[-1])
        self._events.checkpoint(note, paragraph)
        self._unsaved = False
        self._saved_at = time.monotonic()

    def _check(self) -> None:
        if self._closed:
            raise ParagraphGoneError(self._closed)


def _is_extended(before: Message, after: Message) -> bool:
    return before.kind is after.kind is Kind.TEXT and after.data.startswith(before.data)


class _Part:
    """A message that grows, up to the limit."""

    def __init__(self, kind: Kind, data: str) -> None:
        self.kind = kind
        self._texts = [data] if data else []
        self._size = len(data)
        self._cut = 0

    def add(self, text: str, limit: int) -> None:
        """Append text. If plain text exceeds the limit, drop text at its beginning.

        A quarter of the limit is dropped at once, so that the next appends need no cut.
        """
        self._texts.append(text)
        self._size += len(text)
        if self.kind is Kind.TEXT and self._size > limit - 200:
            whole = "".join(self._texts)
            tail = last_lines(whole, limit * 3 // 4)
            self._cut += len(whole) - len(tail)
            self._texts, self._size = [tail], len(tail)

    @property
    def size(self) -> int:
        """Number of characters."""
        return self._size

    def message(self) -> Message:
        """Current contents as a message."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        data = self._texts[0] if self._texts else ""
        if self._cut:
            data = _("[{cut:,} earlier characters were cut]\n{data}").format(
                cut=self._cut, data=data
            )
        return Message(self.kind, data)
