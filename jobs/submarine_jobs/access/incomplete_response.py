"""An HTTP answer that broke off is no answer.

``http.client`` says so where a whole body is read, and says nothing where it is read with a limit.
"""

from __future__ import annotations

from http.client import HTTPResponse, IncompleteRead


def must_be_whole(reply: HTTPResponse, data: bytes = b"") -> None:
    """Raise ``IncompleteRead`` unless all that was promised has come; ``data`` is what has."""
    if reply.length:
        raise IncompleteRead(data, reply.length)
