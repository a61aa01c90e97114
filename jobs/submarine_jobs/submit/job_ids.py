"""Job ids: readable, unique, safe as a path, a host name and a YARN tag."""

from __future__ import annotations

import re
import secrets
import time

from submarine_jobs.errors import StorageError
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import layout

_UNSAFE = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 40


def slug(name: str) -> str:
    """``name`` as lower-case letters, digits and single dashes; ``job`` when nothing is left."""
    return _UNSAFE.sub("-", name.lower()).strip("-")[:MAX_SLUG].strip("-") or "job"


def new_job_id(name: str, now: float | None = None) -> str:
    """A fresh id such as ``digits-20261120-7f3a``; the date is UTC, the end is random."""
    day = time.strftime("%Y%m%d", time.gmtime(now))
    return f"{slug(name)}-{day}-{secrets.token_hex(2)}"


def free_job_id(storage: Storage, root: str, name: str, now: float) -> str:
    """A new id that has no job directory below ``root`` yet."""
    for _ in range(20):
        job_id = new_job_id(name, now)
        if storage.stat(layout.job_directory(root, job_id)) is None:
            return job_id
    raise StorageError(f"No free job id for the name {name!r} under {root}.")
