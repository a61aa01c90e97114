"""Cut an output to Zeppelin's limit, which its server does not enforce.

The end of the output is kept, with a notice about the part that was cut. Images do not count; they
have their own limit, because each is sent to the browser in one websocket message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submarine_runtime.translation import _
from submarine_zeppelin.interface.interpreter import Kind, Message

#: Zeppelin's default, in characters for a whole paragraph.
DEFAULT_LIMIT = 102_400
LIMIT_PROPERTY = "zeppelin.interpreter.output.limit"
#: Limit of one image, in characters of base64.
IMAGE_LIMIT = 4_000_000
_MIN_LIMIT = 1_000
#: Upper bound of the length of a notice.
_NOTICE_LENGTH = 200


def output_limit(properties: Mapping[str, str]) -> int:
    """Return the limit from the server's settings, or Zeppelin's default."""
    try:
        return max(_MIN_LIMIT, int(properties.get(LIMIT_PROPERTY, DEFAULT_LIMIT)))
    except ValueError:
        return DEFAULT_LIMIT


def fit(messages: Sequence[Message], limit: int) -> list[Message]:
    """Return the end of an output, within the limit.

    Returns
    -------
    list of Message
        Without images not longer than ``limit`` in total.
    """
    included: list[Message] = []
    remaining = limit
    for number, message in enumerate(reversed(messages)):
        size = 0 if message.kind is Kind.IMG else len(message.data)
        earlier = len(messages) - number - 1
        # Leave space for a notice about earlier messages.
        space = remaining - _NOTICE_LENGTH if earlier else remaining
        if message.kind is Kind.IMG and len(message.data) > IMAGE_LIMIT:
            message = _notice(
                _("An image of {count:,} characters was cut").format(count=len(message.data))
            )
            size = len(message.data)
        if size > space:
            included += reversed(_cut(message, remaining, limit, earlier))
            break
        included.append(message)
        remaining -= size
    return included[::-1]


def _cut(message: Message, space: int, limit: int, earlier: int) -> list[Message]:
    """Return the part of a message that fits into ``space``, with a notice about the rest."""
    space -= _NOTICE_LENGTH
    before = _(" and {earlier} earlier messages").format(earlier=earlier) if earlier else ""
    reason = _("the limit is {limit:,} ({limit_property})").format(
        limit=limit, limit_property=LIMIT_PROPERTY
    )
    if message.kind is Kind.TEXT and space > 0:
        tail = last_lines(message.data, space)
        cut = len(message.data) - len(tail)
        return [
            Message(
                Kind.TEXT,
                _("[{cut:,} characters{before} were cut: {reason}]\n{tail}").format(
                    cut=cut, before=before, reason=reason, tail=tail
                ),
            )
        ]
    if message.kind is Kind.TABLE and space > 0:
        head = message.data[:space].rpartition("\n")[0]
        rows = message.data.rstrip("\n").count("\n") - head.count("\n")
        if head:
            notice = _notice(
                _("The last {rows:,} rows of the table{before} were cut").format(
                    rows=rows, before=before
                ),
                reason,
            )
            return [Message(Kind.TABLE, head), notice]
    what = _("An output of {count:,} characters{before}").format(
        count=len(message.data), before=before
    )
    return [
        _notice(
            _("{what} was cut").format(what=what)
            if not earlier
            else _("{what} were cut").format(what=what),
            reason,
        )
    ]


def _notice(
    what: str, reason: str = _("the limit is {image_limit:,}").format(image_limit=IMAGE_LIMIT)
) -> Message:
    return Message(Kind.TEXT, f"[{what}: {reason}]\n")


def last_lines(text: str, size: int) -> str:
    """Return at most the last ``size`` characters, from the start of a line if possible."""
    if size <= 0:
        return ""
    if len(text) <= size:
        return text
    tail = text[-size:]
    line_end = tail.find("\n")
    # A single line that is longer than ``size`` is cut within the line.
    return tail[line_end + 1 :] if 0 <= line_end < len(tail) - 1 else tail
