"""A paragraph's output: what it is to be, what the server has of it, and the way between.

Interpreters change it as often as they like; ``writing`` sends it a few times a second. What is
streamed by the server's append is in no reload, so that whole pieces follow and are saved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from submarine_zeppelin.interface import (
    Context,
    Kind,
    Message,
    Output,
    ParagraphGoneError,
    fit,
    tail_of_lines,
)
from submarine_zeppelin.thrift import EventClient

#: Seconds after which streamed text is sent whole and saved.
SAVE_EVERY = 3.0


class ParagraphOutput(Output):
    """The output of one run of a paragraph.

    Parameters
    ----------
    changed
        Called when there is something to send.
    limit
        Characters that it may have.
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
        self._pieces: list[_Piece] = []
        self._gone = ""
        self._sending = threading.Lock()
        #: What the server shows; None: not known.
        self._sent: list[Message] | None = None
        self._unsaved = False
        self._saved_at = 0.0
        #: What the paragraph's result was, until something changes.
        self._result: list[Message] | None = None
        self._released = False

    def show(self, messages: Sequence[Message]) -> None:
        """Replace the whole output; see ``Output``."""
        self._check()
        with self._lock:
            self._pieces = [_Piece(one.kind, one.data) for one in messages]
            self._released = False
        self._changed(self)

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Add to the last piece or begin one; see ``Output``."""
        self._check()
        if not text:
            return
        with self._lock:
            if self._released:
                self._pieces = [_Piece(Kind.TEXT, "[the output before this is not kept]\n")]
                self._released = False
            if not self._pieces or self._pieces[-1].kind is not kind:
                self._pieces.append(_Piece(kind, ""))
            self._pieces[-1].add(text, self._limit())
        self._changed(self)

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        """Set the job's link; see ``Output``."""
        self._check()
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"a link is http or https, not {url[:80]!r}")
        self._events.link(self.context.note_id, self.context.paragraph_id, label, url, tooltip)

    @property
    def messages(self) -> list[Message]:
        """What it is to be now, within the limit."""
        with self._lock:
            whole = [piece.message() for piece in self._pieces]
        return fit(whole, self._limit())

    def clear(self) -> None:
        """Begin with nothing, on the server too."""
        with self._lock:
            self._pieces = []
        with self._sending:
            self._events.update_all(self.context.note_id, self.context.paragraph_id, [])
            self._sent, self._unsaved = [], True

    def returned(self, messages: Sequence[Message]) -> None:
        """The server gets these as the result of the paragraph: nothing more is to be sent.

        Once something changes everything is: a result is not among what its checkpoint saves.
        """
        with self._sending:
            with self._lock:
                self._pieces = [_Piece(one.kind, one.data) for one in messages]
            self._sent, self._result = None, self.messages

    def end(self, why: str) -> None:
        """No more of this is wanted: each further call raises ``ParagraphGoneError``."""
        self._gone = why

    @property
    def ended(self) -> bool:
        """Whether ``end`` was called."""
        return bool(self._gone)

    @property
    def size(self) -> int:
        """Characters that it holds."""
        with self._lock:
            held = sum(piece.size for piece in self._pieces)
        with self._sending:
            # What was sent is mostly the same text.
            sent = sum(len(one.data) for one in self._sent or self._result or ())
        return max(held, sent)

    @property
    def released(self) -> bool:
        """Whether it holds nothing because of ``release``."""
        return self._released

    def release(self) -> None:
        """Hold nothing of an output that is saved: what is shown later replaces all of it."""
        with self._sending, self._lock:
            self._pieces, self._sent, self._result, self._released = [], None, None, True

    def forget_sent(self) -> None:
        """The server may have lost what it was sent: send all of it the next time."""
        self._sent = None

    def flush(self, *, save: bool = False) -> bool:
        """Bring the server's output to what it is to be.

        Returns
        -------
        bool
            Whether all of it is saved too; else flush again in ``SAVE_EVERY`` seconds.

        Raises
        ------
        ServerAwayError, EventRefusedError
            As the event client has them; what the server has is not known then.
        """
        with self._sending:
            if self.ended or self._released:
                return True
            wanted = self.messages
            if wanted == self._result:
                return True
            had, self._sent, self._result = self._sent, None, None
            only_appended = self._send(wanted, had)
            self._sent = wanted
            due = save or time.monotonic() >= self._saved_at + SAVE_EVERY
            if only_appended and not due:
                return False
            if self._unsaved:
                self._save(wanted)
            return True

    def _send(self, wanted: list[Message], had: list[Message] | None) -> bool:
        """Send the difference; whether nothing but text at the end was added."""
        note, paragraph = self.context.note_id, self.context.paragraph_id
        if had == wanted:
            return self._unsaved and self._streams(wanted)
        self._unsaved = True
        if had is None or len(wanted) < len(had):
            self._events.update_all(note, paragraph, wanted)
            return False
        only_appended = True
        for index, message in enumerate(wanted):
            before = had[index] if index < len(had) else None
            if before == message:
                continue
            last = index == len(wanted) - 1
            if last and before is not None and _grown(before, message):
                self._events.append(note, paragraph, index, message.data[len(before.data) :])
            else:
                self._events.update(note, paragraph, index, message)
                only_appended = only_appended and last and message.kind is Kind.TEXT
        return only_appended

    def _streams(self, wanted: list[Message]) -> bool:
        return bool(wanted) and wanted[-1].kind is Kind.TEXT

    def _save(self, wanted: list[Message]) -> None:
        note, paragraph = self.context.note_id, self.context.paragraph_id
        if self._streams(wanted):
            self._events.update(note, paragraph, len(wanted) - 1, wanted[-1])
        self._events.checkpoint(note, paragraph)
        self._unsaved = False
        self._saved_at = time.monotonic()

    def _check(self) -> None:
        if self._gone:
            raise ParagraphGoneError(self._gone)


def _grown(before: Message, after: Message) -> bool:
    return before.kind is after.kind is Kind.TEXT and after.data.startswith(before.data)


class _Piece:
    """A message that grows; never much longer than the limit."""

    def __init__(self, kind: Kind, data: str) -> None:
        self.kind = kind
        self._parts = [data] if data else []
        self._size = len(data)
        self._cut = 0

    def add(self, text: str, limit: int) -> None:
        """Add text at the end; of plain text too much is dropped at its beginning.

        A quarter of the limit at once, so that what is shown can be added to until the next time.
        """
        self._parts.append(text)
        self._size += len(text)
        if self.kind is Kind.TEXT and self._size > limit - 200:
            whole = "".join(self._parts)
            tail = tail_of_lines(whole, limit * 3 // 4)
            self._cut += len(whole) - len(tail)
            self._parts, self._size = [tail], len(tail)

    @property
    def size(self) -> int:
        """Its characters."""
        return self._size

    def message(self) -> Message:
        """What it is now."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        data = self._parts[0] if self._parts else ""
        if self._cut:
            data = f"[{self._cut:,} characters were cut here: the newest are below]\n{data}"
        return Message(self.kind, data)
