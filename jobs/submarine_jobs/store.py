"""What this user's machine knows of jobs: an index in SQLite, rebuildable from the job directories.

Lives in the host-local state directory, never on a shared file system (SQLite's locks do not work
there). Holds no secret and no log. Loss of the file costs nothing but the first ``list``.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    job_id TEXT PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, profile TEXT NOT NULL,
    job_dir TEXT NOT NULL, created REAL NOT NULL, state TEXT NOT NULL, handle TEXT, record TEXT,
    updated REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (created DESC);
"""
_COLUMNS = (
    "SELECT job_id, name, backend, profile, job_dir, created, state, handle, record FROM jobs "
)
_VERSION = 1


@dataclass(frozen=True)
class Known:
    """One row: a job that this machine has seen; ``job_dir`` is a URL."""

    job_id: str
    name: str
    backend: str
    profile: str
    job_dir: str
    created: float
    state: State
    handle: Mapping[str, Any] | None = None
    record: JobRecord | None = None

    @property
    def final(self) -> bool:
        """Whether the record is the job's own last word (LOST may still be revised)."""
        return self.record is not None and self.state.ended and self.state is not State.LOST


class JobStore:
    """The index of one user on one machine; safe for several kernels at once.

    Parameters
    ----------
    path
        File of the index; its directory is created with mode 0700.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._ready = False

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if not self._ready:
                self._prepare()
            connection = sqlite3.connect(self._path, timeout=10)
            try:
                with connection:
                    yield connection
            finally:
                connection.close()

    def _prepare(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._create()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # A damaged index is only an index: put it aside and begin a new one.
            self._path.rename(self._path.with_suffix(".damaged"))
            self._create()
        self._ready = True

    def _create(self) -> None:
        connection = sqlite3.connect(self._path, timeout=10)
        try:
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        finally:
            connection.close()
        self._path.chmod(0o600)

    def put(self, job: Known) -> None:
        """Add or replace one row."""
        record = json.dumps(replace_events(job.record)) if job.record else None
        row = (
            job.job_id,
            job.name,
            job.backend,
            job.profile,
            job.job_dir,
            job.created,
            job.state.value,
            json.dumps(dict(job.handle)) if job.handle is not None else None,
            record,
            time.time(),
        )
        with self._connection() as connection:
            marks = ",".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", row)  # noqa: S608

    def get(self, job_id: str) -> Known | None:
        """The row of a job, or None."""
        found = self._select("WHERE job_id = ?", (job_id,))
        return found[0] if found else None

    def beginning_with(self, text: str) -> list[Known]:
        """Rows whose id begins with ``text``, newest first, at most 20."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        return self._select(
            "WHERE job_id LIKE ? ESCAPE '\\' ORDER BY created DESC LIMIT 20", (pattern,)
        )

    def named(self, name: str) -> Known | None:
        """The newest job of that name, or None."""
        found = self._select("WHERE name = ? ORDER BY created DESC LIMIT 1", (name,))
        return found[0] if found else None

    def newest(self, limit: int = 100) -> list[Known]:
        """Rows, newest first."""
        return self._select("ORDER BY created DESC LIMIT ?", (limit,))

    def _select(self, clause: str, values: tuple[Any, ...]) -> list[Known]:
        query = _COLUMNS + clause  # clauses are constants of this module
        with self._connection() as connection:
            return [_known(row) for row in connection.execute(query, values).fetchall()]


def replace_events(record: JobRecord) -> dict[str, Any]:
    """The record as JSON without its events, which the job directory holds."""
    return replace(record, events=[]).to_json()


def _known(row: tuple[Any, ...]) -> Known:
    job_id, name, backend, profile, job_dir, created, state, handle, record = row
    return Known(
        job_id,
        name,
        backend,
        profile,
        job_dir,
        created,
        State(state),
        json.loads(handle) if handle else None,
        JobRecord.from_json(json.loads(record)) if record else None,
    )
