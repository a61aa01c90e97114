"""An output made to fit Zeppelin's limit, which its server does not enforce.

The newest is kept, and what was cut is said. Pictures are not counted by Zeppelin; they have a
limit of their own, since each goes through the browser's websocket in one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submarine_zeppelin.interface.interpreter import Kind, Message

#: Zeppelin's default, in characters for a whole paragraph.
DEFAULT_LIMIT = 102_400
LIMIT_PROPERTY = "zeppelin.interpreter.output.limit"
#: Of one picture, in characters of base64.
PICTURE_LIMIT = 4_000_000
_SMALLEST = 1_000
#: A notice is shorter than this.
_ROOM_FOR_NOTICE = 200


def limit_of(properties: Mapping[str, str]) -> int:
    """The limit that the server's administrator set, or Zeppelin's default."""
    try:
        return max(_SMALLEST, int(properties.get(LIMIT_PROPERTY, DEFAULT_LIMIT)))
    except ValueError:
        return DEFAULT_LIMIT


def fit(messages: Sequence[Message], limit: int) -> list[Message]:
    """As much of an output as the limit allows, from its end.

    Returns
    -------
    list of Message
        Together not longer than ``limit``, pictures aside.
    """
    kept: list[Message] = []
    left = limit
    for number, message in enumerate(reversed(messages)):
        size = 0 if message.kind is Kind.IMG else len(message.data)
        earlier = len(messages) - number - 1
        # What is cut from the earlier pieces has to be said too.
        room = left - _ROOM_FOR_NOTICE if earlier else left
        if message.kind is Kind.IMG and len(message.data) > PICTURE_LIMIT:
            message = _notice(f"A picture of {len(message.data):,} characters was cut")
            size = len(message.data)
        if size > room:
            kept += reversed(_cut(message, left, limit, earlier))
            break
        kept.append(message)
        left -= size
    return kept[::-1]


def _cut(message: Message, room: int, limit: int, earlier: int) -> list[Message]:
    """The part of a piece that fits into ``room``, and what is to be said of the rest."""
    room -= _ROOM_FOR_NOTICE
    before = f" and {earlier} earlier pieces" if earlier else ""
    why = f"the limit is {limit:,} ({LIMIT_PROPERTY})"
    if message.kind is Kind.TEXT and room > 0:
        tail = tail_of_lines(message.data, room)
        cut = len(message.data) - len(tail)
        return [Message(Kind.TEXT, f"[{cut:,} characters{before} were cut: {why}]\n{tail}")]
    if message.kind is Kind.TABLE and room > 0:
        head = message.data[:room].rpartition("\n")[0]
        rows = message.data.rstrip("\n").count("\n") - head.count("\n")
        if head:
            said = _notice(f"The last {rows:,} rows of the table{before} were cut", why)
            return [Message(Kind.TABLE, head), said]
    what = f"An output of {len(message.data):,} characters{before}"
    return [_notice(f"{what} was cut" if not earlier else f"{what} were cut", why)]


def _notice(what: str, why: str = f"the limit is {PICTURE_LIMIT:,}") -> Message:
    return Message(Kind.TEXT, f"[{what}: {why}]\n")


def tail_of_lines(text: str, size: int) -> str:
    """At most the last ``size`` characters, from the beginning of a line where there is one."""
    if size <= 0:
        return ""
    if len(text) <= size:
        return text
    tail = text[-size:]
    line_end = tail.find("\n")
    # A single line that is longer than all of it is cut within.
    return tail[line_end + 1 :] if 0 <= line_end < len(tail) - 1 else tail
