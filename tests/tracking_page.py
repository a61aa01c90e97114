"""What a user sees at the tracking URL of an application."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urljoin

from submarine_minicluster.hadoop import Access, RestError, http_request

#: From the active ResourceManager to its proxy, and from there to the history server.
REDIRECTS = 4


def shown_at(url: str, access: Access | None) -> str:
    """The page after the redirects, as the user of a ticket sees it; empty without an answer."""
    with suppress(RestError):
        for _ in range(REDIRECTS):
            _status, body, place = http_request("GET", url, accept="text/html", access=access)
            if not place:
                return body.decode()
            url = urljoin(url, place)
    return ""
