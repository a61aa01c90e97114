"""Sanitize text from jobs, containers and clusters for display.

``printable`` is for text output and ``escape_html`` for HTML. ``web_link`` decides what may become
a link.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: Maximum length of one field of a job in an output, in characters.
FIELD_LIMIT = 500

# Controls (C0 without tab and newline, DEL, C1), bidirectional overrides and isolates, line and
# paragraph separators, the byte order mark, lone surrogates, tag characters.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SCHEMES = frozenset({"http", "https"})


def printable(text: object, limit: int = FIELD_LIMIT) -> str:
    """Replace every character that could move, hide or reorder other text by U+FFFD.

    Newlines and tabs are kept. Text longer than ``limit`` characters ends in an ellipsis.
    """
    words = text if isinstance(text, str) else str(text)
    if len(words) > limit:
        words = words[: max(limit - 1, 0)] + "…"
    return _UNFIT.sub("\ufffd", words)


def one_line(text: object, limit: int = FIELD_LIMIT) -> str:
    """Like ``printable``, with each run of white space replaced by one space."""
    words = text if isinstance(text, str) else str(text)
    return printable(" ".join(words[: 4 * limit].split()), limit)


def _escaped(text: str) -> str:
    # cost: the module html, which has this function, loads a table of 0.4 MB. Zeppelin's
    # interpreter needs it for nothing else.
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def escape_html(text: object, limit: int = FIELD_LIMIT) -> str:
    """Like ``printable``, escaped for HTML text and quoted attributes."""
    return _escaped(printable(text, limit))


def escape_html_line(text: object, limit: int = FIELD_LIMIT) -> str:
    """Like ``one_line``, escaped for HTML text and quoted attributes."""
    return _escaped(one_line(text, limit))


def web_link(url: object) -> str | None:
    """Return ``url`` if it is safe as a link (http or https, with a host), else None."""
    if not isinstance(url, str) or len(url) > 2000 or _UNFIT.search(url):
        return None
    if any(character.isspace() for character in url) or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        fit = parts.scheme.lower() in _SCHEMES and bool(parts.hostname) and "@" not in parts.netloc
        return url if fit else None
    except ValueError:
        return None
