"""Local index of jobs in SQLite; it can be rebuilt from the job directories.

The file is in the host-local state directory, because SQLite's locks do not work on a shared file
system. It holds no secrets and no logs. If the file is lost, the next ``list`` is slower.
Lists show unfinished jobs first, then ended jobs, each newest first.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from submarine_jobs import model
from submarine_jobs.config import make_private
from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import JobRecord, State, layout
from submarine_runtime.translation import _


class Owner(NamedTuple):
    """The owner of a job directory and the user that its record names.

    A job belongs to the user of this process if the file system names that user as the owner and
    the record names that user or none. The owner of the directory can write any name into the
    record. The file system determines the owner: the uid on this machine, the NameNode's entry on
    HDFS. With simple authentication HDFS accepts the name that a client sends, so there the check
    protects against mistakes only. The owner never changes, so the index stores it.

    Attributes
    ----------
    name
        Owner according to the file system; empty: the account of this process, or unknown.
    recorded
        User in the record or intent; empty: none.
    """

    name: str = ""
    recorded: str = ""

    def foreign_to(self, user: str) -> str:
        """Return the owner or recorded user that is not ``user``; empty if both are ``user``."""
        return next((name for name in self if name not in ("", user)), "")


def with_owner(record: JobRecord, owner: Owner | None) -> JobRecord:
    """Return ``record`` with the directory owner as user; warn if the record names another user."""
    if owner is None or not owner.name or record.user == owner.name:
        return record
    words = _(
        "The record names {user} as the job's user, but its directory belongs to {owner}."
    ).format(user=record.user, owner=owner.name)
    warnings = [words, *record.warnings] if record.user else record.warnings
    return replace(record, user=owner.name, warnings=warnings)


_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    job_id TEXT PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, profile TEXT NOT NULL,
    job_dir TEXT NOT NULL, created REAL NOT NULL, state TEXT NOT NULL, handle TEXT, record TEXT,
    updated REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (created DESC);
CREATE TABLE IF NOT EXISTS origins (
    job_id TEXT PRIMARY KEY, notebook TEXT NOT NULL, cell_id TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state);
CREATE TABLE IF NOT EXISTS launches (
    notebook TEXT NOT NULL, job_id TEXT NOT NULL, PRIMARY KEY (notebook, job_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (
    job_id TEXT PRIMARY KEY, owner TEXT NOT NULL, recorded TEXT NOT NULL
) WITHOUT ROWID;
"""
_FROM = "FROM jobs LEFT JOIN owners USING (job_id) "
_COLUMNS = (
    "SELECT job_id, name, backend, profile, job_dir, created, state, handle, record, owner, "
    f"recorded {_FROM}"
)
_VERSION = 1


@dataclass(frozen=True)
class IndexEntry:
    """One row of the index; ``job_dir`` is a URL."""

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
        """Whether the record is final; a LOST job may still be revised."""
        return self.record is not None and self.state.ended and self.state is not State.LOST


class JobPage(NamedTuple):
    """A page of rows, the total number of matching rows, and whether more rows follow."""

    rows: list[IndexEntry]
    total: int
    more: bool


class Origin(NamedTuple):
    """Notebook path and cell id from which a job was submitted; empty if unknown."""

    notebook: str = ""
    cell_id: str = ""


class JobStore:
    """The index of one user on one machine; several processes may use it at the same time.

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
        make_private(self._path.parent)
        try:
            self._create()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # The index can be rebuilt: rename a damaged file and create a new one.
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

    def put(self, job: IndexEntry) -> None:
        """Add or replace one row."""
        self._write("REPLACE", job)

    def add(self, job: IndexEntry) -> None:
        """Add one row unless the job has a row, which is newer."""
        self._write("IGNORE", job)

    def _write(self, otherwise: str, job: IndexEntry) -> None:
        # Without the events, which are in the job directory.
        record = json.dumps(replace(job.record, events=[]).to_json()) if job.record else None
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
            connection.execute(f"INSERT OR {otherwise} INTO jobs VALUES ({marks})", row)  # noqa: S608

    def remove(self, job_id: str) -> None:
        """Remove the row of a job, if there is one."""
        with self._connection() as connection:
            connection.execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))

    def get(self, job_id: str) -> IndexEntry | None:
        """Return the row of a job, or None."""
        found = self._select("WHERE job_id = ?", (job_id,))
        return found[0] if found else None

    def updated_at(self, job_id: str) -> float | None:
        """Return when the row of a job was written, in seconds since the epoch."""
        with self._connection() as connection:
            query = "SELECT updated FROM jobs WHERE job_id = ?"
            found = connection.execute(query, (job_id,)).fetchone()
        return None if found is None else float(found[0])

    def beginning_with(self, text: str, user: str | None = None) -> list[IndexEntry]:
        """Return up to 20 rows whose id begins with ``text``, newest first; ``user`` filters."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        own, values = _own(user)
        clause = f"WHERE job_id LIKE ? ESCAPE '\\' {own} ORDER BY created DESC LIMIT 20"
        return self._select(clause, (pattern, *values))

    def named(self, name: str, user: str | None = None) -> IndexEntry | None:
        """Return the newest job of that name, or None; ``user`` restricts it to one user."""
        own, values = _own(user)
        clause = f"WHERE name = ? {own} ORDER BY created DESC LIMIT 1"
        found = self._select(clause, (name, *values))
        return found[0] if found else None

    def newest_own(self, user: str) -> IndexEntry | None:
        """Return the newest job of ``user``, or None."""
        clause = f"WHERE {OWN} ORDER BY created DESC LIMIT 1"
        found = self._select(clause, (user,) * OWN.count("?"))
        return found[0] if found else None

    def newest(self, limit: int = 100) -> list[IndexEntry]:
        """Return rows, newest first."""
        return self._select("ORDER BY created DESC LIMIT ?", (limit,))

    def unfinished(self) -> list[IndexEntry]:
        """Return the rows of unfinished and lost jobs, newest first."""
        return self._select(
            "WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') ORDER BY created DESC", ()
        )

    def since(self, mark: int) -> list[IndexEntry]:
        """Return the rows that were added or replaced after ``mark``, oldest change first."""
        return self._select("WHERE rowid > ? ORDER BY rowid", (mark,))

    def mark(self) -> tuple[int, int]:
        """Return a number that grows with every change of a row, and the number of rows."""
        with self._connection() as connection:
            # A replaced row gets a new rowid, the largest.
            query = "SELECT coalesce(max(rowid), 0), count(*) FROM jobs"
            mark, count = connection.execute(query).fetchone()
        return int(mark), int(count)

    def ids(self) -> set[str]:
        """Return the ids of all jobs."""
        with self._connection() as connection:
            return {row[0] for row in connection.execute("SELECT job_id FROM jobs")}

    def stamp(self) -> tuple[int, int, int]:
        """Return inode, size and modification time of the index file, without reading it."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0, 0
        return found.st_ino, found.st_size, found.st_mtime_ns

    def page(self, query: JobQuery) -> JobPage:
        """Return the rows that match ``query``: unfinished jobs first, each group newest first."""
        clause, values = query.where(paged=True)
        found = self._select(f"{clause} {ORDER} LIMIT ?", (*values, query.limit + 1))
        clause, values = query.where(paged=False)
        with self._connection() as connection:
            counting = f"SELECT COUNT(*) {_FROM} {clause}"
            total = int(connection.execute(counting, values).fetchone()[0])
        return JobPage(found[: query.limit], total, len(found) > query.limit)

    def put_origin(self, job_id: str, origin: Origin) -> None:
        """Store the notebook and cell of a job; they never change."""
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO origins VALUES (?, ?, ?)", (job_id, *origin))

    def origins(self, job_ids: Sequence[str]) -> dict[str, Origin]:
        """Return the stored origins of these jobs."""
        marks = ",".join("?" * len(job_ids))
        query = f"SELECT job_id, notebook, cell_id FROM origins WHERE job_id IN ({marks})"  # noqa: S608
        with self._connection() as connection:
            rows = connection.execute(query, tuple(job_ids)).fetchall()
        return {job_id: Origin(notebook, cell_id) for job_id, notebook, cell_id in rows}

    def put_owner(self, job_id: str, owner: Owner) -> None:
        """Store the owner of a job directory; it never changes."""
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO owners VALUES (?, ?, ?)", (job_id, *owner))

    def owner(self, job_id: str) -> Owner | None:
        """Return the stored owner of a job directory, or None."""
        with self._connection() as connection:
            query = "SELECT owner, recorded FROM owners WHERE job_id = ?"
            found = connection.execute(query, (job_id,)).fetchone()
        return None if found is None else Owner(*found)

    def put_launch(self, job_id: str, notebook: Sequence[str]) -> None:
        """Store the notebook that submitted a job, under all its names."""
        with self._connection() as connection:
            rows = [(name, job_id) for name in notebook]
            connection.executemany("INSERT OR IGNORE INTO launches VALUES (?, ?)", rows)

    def newest_of(self, notebook: Sequence[str]) -> IndexEntry | None:
        """Return the newest job that this notebook submitted on this machine, or None."""
        marks = ",".join("?" * len(notebook))
        chosen = f"SELECT job_id FROM launches WHERE notebook IN ({marks})"  # noqa: S608
        clause = f"WHERE job_id IN ({chosen}) ORDER BY created DESC LIMIT 1"
        found = self._select(clause, tuple(notebook))
        return found[0] if found else None

    def _select(self, clause: str, values: tuple[Any, ...]) -> list[IndexEntry]:
        query = _COLUMNS + clause  # clauses are constants of this module
        with self._connection() as connection:
            return [_entry(row) for row in connection.execute(query, values).fetchall()]


def _own(user: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if user is None else (f"AND {OWN}", (user,) * OWN.count("?"))


def _entry(row: tuple[Any, ...]) -> IndexEntry:
    job_id, name, backend, profile, job_dir, created, state, handle, record, owner, recorded = row
    noted = None if owner is None else Owner(owner, recorded)
    return IndexEntry(
        job_id,
        name,
        backend,
        profile,
        job_dir,
        created,
        State(state),
        json.loads(handle) if handle else None,
        _indexed_record(record, job_id, noted) if record else None,
    )


def _indexed_record(record: str, job_id: str, noted: Owner | None) -> JobRecord | None:
    try:
        return with_owner(model.read_record(record, job_id), noted)
    except ValueError:
        return None  # Written by another version.


_ENDED = ",".join(f"'{state.value}'" for state in State if state.ended)
_OVER = f"(state IN ({_ENDED}))"
#: Jobs of one user: neither the owner nor the record names another user.
OWN = (
    "coalesce(owner, '') IN ('', ?) AND coalesce(recorded, '') IN ('', ?) "
    "AND coalesce(json_extract(record, '$.user'), '') IN ('', ?)"
)
ORDER = f"ORDER BY {_OVER}, created DESC, job_id DESC"
_CURSOR = re.compile(r"([01]):(\d{1,12}(?:\.\d{1,9})?):([a-z0-9-]{1,80})")


@dataclass(frozen=True)
class JobQuery:
    """Filter and position of a page of rows.

    Parameters
    ----------
    states
        Only these states; empty: all.
    text
        Part of the name or id of the job, or of its workflow or workflow run, ignoring case.
    user
        Only jobs of this user and jobs without a known owner; None: all jobs.
    after
        ``cursor_of`` the last row of the previous page.
    """

    states: Sequence[State] = ()
    text: str = ""
    user: str | None = None
    limit: int = 50
    after: str = ""

    def where(self, *, paged: bool) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL condition and its values; without ``paged``, for all pages together.

        Raises
        ------
        UsageError
            If ``after`` is not a cursor.
        """
        parts: list[str] = []
        values: list[Any] = []
        if self.states:
            parts.append(f"state IN ({','.join('?' * len(self.states))})")
            values += [state.value for state in self.states]
        if self.text:
            workflow = "lower(coalesce(json_extract(record, '$.workflow{0}'), ''))"
            places = ("lower(name)", "job_id", workflow.format(""), workflow.format("_run"))
            parts.append(f"({' OR '.join(f'instr({place}, ?)' for place in places)})")
            values += [self.text.lower()] * len(places)
        if self.user is not None:
            parts.append(OWN)
            values += [self.user] * OWN.count("?")
        if paged and self.after:
            over, created, job_id = _parsed(self.after)
            parts.append(
                f"({_OVER} > ? OR ({_OVER} = ? AND (created < ? OR (created = ? AND job_id < ?))))"
            )
            values += [over, over, created, created, job_id]
        return (f"WHERE {' AND '.join(parts)}" if parts else ""), tuple(values)


def cursor_of(state: State, created: float, job_id: str) -> str:
    """Return the cursor of a page that ends with this row."""
    return f"{int(state.ended)}:{created!r}:{job_id}"


def _parsed(cursor: str) -> tuple[int, float, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None or not layout.is_job_id(match.group(3)):
        raise UsageError(
            _("`after` is not a valid cursor of this list."),
            _("Omit `after` to get the first page."),
        )
    return int(match.group(1)), float(match.group(2)), match.group(3)
