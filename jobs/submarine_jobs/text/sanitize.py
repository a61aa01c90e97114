"""Makes text that came from a job, a container or a cluster fit to be shown; trusts nothing.

Knows nothing of jobs. ``printable`` is for text outputs, ``escaped`` for HTML, ``web_link`` decides
what may become a link.
"""

from __future__ import annotations

import html
import re
from urllib.parse import urlsplit

#: Longest text that any single field of a job takes in an output, in characters.
FIELD_LIMIT = 500

# Controls (C0 without tab and newline, DEL, C1), bidirectional overrides and isolates, line and
# paragraph separators, the byte order mark, lone surrogates, tag characters.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SCHEMES = frozenset({"http", "https"})


def printable(text: object, limit: int = FIELD_LIMIT) -> str:
    """``text`` with everything that could move, hide or reorder other text replaced by U+FFFD.

    Newlines and tabs stay. What is longer than ``limit`` characters ends in an ellipsis.
    """
    words = text if isinstance(text, str) else str(text)
    if len(words) > limit:
        words = words[: max(limit - 1, 0)] + "…"
    return _UNFIT.sub("\ufffd", words)


def one_line(text: object, limit: int = FIELD_LIMIT) -> str:
    """As ``printable``, with every run of white space made one space."""
    words = text if isinstance(text, str) else str(text)
    return printable(" ".join(words[: 4 * limit].split()), limit)


def escaped(text: object, limit: int = FIELD_LIMIT) -> str:
    """As ``printable``, ready to stand in HTML text or in a quoted attribute."""
    return html.escape(printable(text, limit), quote=True)


def escaped_line(text: object, limit: int = FIELD_LIMIT) -> str:
    """As ``one_line``, ready to stand in HTML text or in a quoted attribute."""
    return html.escape(one_line(text, limit), quote=True)


def web_link(url: object) -> str | None:
    """``url`` if it may become a link (http or https, with a host, nothing unfit), else None."""
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
