"""Job ids: readable, unique, safe as a path, a host name and a YARN tag."""

from __future__ import annotations

import re
import secrets
import time

_UNSAFE = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 40


def slug(name: str) -> str:
    """``name`` as lower-case letters, digits and single dashes; ``job`` when nothing is left."""
    return _UNSAFE.sub("-", name.lower()).strip("-")[:MAX_SLUG].strip("-") or "job"


def new_job_id(name: str, now: float | None = None) -> str:
    """A fresh id such as ``digits-20261120-7f3a``; the date is UTC, the end is random."""
    day = time.strftime("%Y%m%d", time.gmtime(now))
    return f"{slug(name)}-{day}-{secrets.token_hex(2)}"
