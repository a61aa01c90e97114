"""Readers and sources of logs, shared by all pages of a server: one connection to each job."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from threading import Lock
from weakref import WeakKeyDictionary

from submarine_jobs.logs import LogDelivery, LogReader, LogSource
from submarine_server.service import JobService

#: Maximum number of cached readers.
MAX_READERS = 64

_readers: WeakKeyDictionary[JobService, OrderedDict[str, LogReader]] = WeakKeyDictionary()
_lock = Lock()


def log_reader(service: JobService, job_id: str) -> LogReader:
    """Return the cached reader of a job's logs; blocks.

    Raises
    ------
    JobNotFoundError
        If the job does not exist.
    """
    with _lock:
        kept = _readers.setdefault(service, OrderedDict())
        found = kept.get(job_id)
    if found is None:
        found = LogReader(service.find(job_id))
        with _lock:
            found = kept.setdefault(job_id, found)
            while len(kept) > MAX_READERS:
                kept.popitem(last=False)
    return found


_sources: WeakKeyDictionary[JobService, dict[str, LogSource]] = WeakKeyDictionary()


def log_source(service: JobService, job_id: str) -> LogSource:
    """Return the source of a job's logs, for ``follow``."""
    jobs = _sources.setdefault(service, {})
    found = jobs.get(job_id)
    if found is None or found.ended or found.failure is not None:
        found = jobs[job_id] = LogSource(partial(log_reader, service, job_id), service.call)
    return found


def unfollow(service: JobService, job_id: str, delivery: LogDelivery) -> None:
    """Stop a delivery; the last one of a job ends its source."""
    jobs = _sources.get(service, {})
    if delivery.source.remove(delivery) and jobs.get(job_id) is delivery.source:
        del jobs[job_id]
