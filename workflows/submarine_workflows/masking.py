"""Mask secrets in text that leaves this machine, such as notifications.

Secrets are recognised by value (variables with a secret's name), by position (``password=...``, a
password in a URL) and by form (a private key). Other secrets are not recognised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

MASK = "***"
_WORDS = (
    r"passw(?:or)?d|passphrase|pwd|secret|token(?!s|iz)|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?"
)
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
#: Masking shorter values would remove harmless words.
_SHORTEST = 6
#: A text may also begin within a key.
_KEY = re.compile(
    r"(?:-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----|\A(?=[\w+/=\s]+-----END [A-Z ]{0,40}PRIVATE))"
    r".*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_URL = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@?#'\"]{0,200}):[^\s/@'\"]{1,500}@")
_HEADER = re.compile(r"\b(bearer|basic|digest|negotiate)(\s+)[\w+/=.~-]{6,4000}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"((?:{_WORDS})[\w-]{{0,40}}[\"']?(?:\s{{0,4}}[=:]\s{{0,4}}|\s{{1,4}}(?=\S)))"
    r"(\"[^\"\n]{1,4000}\"|'[^'\n]{1,4000}'|[^\s,;&\"'})\]]{1,4000})",
    re.IGNORECASE,
)


def mask(text: str, secrets: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Return ``text`` with ``***`` in place of every secret.

    Parameters
    ----------
    secrets
        Values known to be secret, such as the token of a job.
    environ
        Variables with a secret's name contain secret values; by default those of this process.
    """
    known = {value for value in secrets if value}
    known.update(_of_environment(os.environ if environ is None else environ))
    # Longest first: one value may be part of another.
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, MASK)
    text = _KEY.sub(MASK, text)
    text = _URL.sub(rf"\1:{MASK}@", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    return _ASSIGNED.sub(_assigned, text)


def _of_environment(environ: Mapping[str, str]) -> set[str]:
    return {
        value
        for name, value in environ.items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name) and not os.path.exists(value)
    }


def _assigned(match: re.Match[str]) -> str:
    before, _ = match.groups()
    if before[-1].isspace() and before.rstrip()[-1] not in "=:":
        # "the token expired" is a sentence; `--db-token 8f3a...` is an option.
        word = match.string[max(match.start() - 60, 0) : match.start()].split()
        if not (word and word[-1].startswith("-")):
            return match.group(0)
    return f"{before}{MASK}"
