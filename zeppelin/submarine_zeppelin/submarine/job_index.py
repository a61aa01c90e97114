"""Index of the jobs that paragraphs show, and whether their final state is shown.

The interpreter uses it after a restart to find the jobs of paragraphs. It complements the index of
``submarine_jobs.tracking.index``, which does not record displays.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from submarine_jobs.config import make_private
from submarine_jobs.model import Profile
from submarine_jobs.tracking import JobStore
from submarine_zeppelin.accounts import common_state_dir
from submarine_zeppelin.interface import ParagraphKey

_SCHEMA = """
CREATE TABLE IF NOT EXISTS shown (
    job_id TEXT PRIMARY KEY, note TEXT NOT NULL, paragraph TEXT NOT NULL, user TEXT NOT NULL,
    profile TEXT NOT NULL, final INTEGER NOT NULL
)
"""
#: Maximum number of jobs in a result. Further jobs of a note are not updated.
MAX_ROWS = 200
#: Prefix of a workflow run's name in place of a job id.
RUN = "workflow:"
#: Prefix of a note's id in place of a notebook's path.
ORIGIN = "zeppelin:"


class ParagraphJob(NamedTuple):
    """A job and the paragraph that shows it; ``user`` ran the paragraph."""

    job_id: str
    note: str
    paragraph: str
    user: str
    profile: str

    @property
    def run(self) -> str | None:
        """Name of a workflow run that is shown in place of a job; None for a job."""
        return self.job_id.removeprefix(RUN) if self.job_id.startswith(RUN) else None


class ParagraphJobIndex:
    """Index in a state directory. Safe for concurrent threads and processes."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "zeppelin.sqlite"

    @classmethod
    def of(cls, profile: Profile) -> ParagraphJobIndex:
        """Return the index of all users, because a paragraph has one output for all users."""
        return cls(common_state_dir(profile))

    def put(self, row: ParagraphJob) -> None:
        """Record that a paragraph shows a job, but not its final state."""
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO shown VALUES (?, ?, ?, ?, ?, 0)", tuple(row))

    def mark_final(self, job_id: str, key: ParagraphKey | None = None) -> None:
        """Record that the final state is shown in a paragraph, or can be shown in none."""
        clause, values = ("AND note = ? AND paragraph = ?", key) if key else ("", ())
        with self._connection() as connection:
            connection.execute(
                f"UPDATE shown SET final = 1 WHERE job_id = ? {clause}",  # noqa: S608
                (job_id, *values),
            )

    def clear_paragraph(self, key: ParagraphKey) -> None:
        """Record that a paragraph no longer shows its jobs."""
        with self._connection() as connection:
            connection.execute("UPDATE shown SET final = 1 WHERE note = ? AND paragraph = ?", key)

    def is_superseded(self, job_id: str, key: ParagraphKey) -> bool:
        """Whether a paragraph no longer shows the job, or shows its final state.

        Another process may have changed that if notes or users have separate processes.
        """
        query = "SELECT final FROM shown WHERE job_id = ? AND note = ? AND paragraph = ?"
        try:
            with self._connection() as connection:
                row = connection.execute(query, (job_id, *key)).fetchone()
        except sqlite3.Error:  # locked: the next call tries again
            return False
        return row is not None and bool(row[0])

    def unfinished(self, note: str | None = None) -> list[ParagraphJob]:
        """Return jobs without a displayed final state, of one note or of all, oldest first."""
        clause, values = ("AND note = ?", (note,)) if note is not None else ("", ())
        query = (
            "SELECT job_id, note, paragraph, user, profile FROM shown WHERE final = 0 "  # noqa: S608
            f"{clause} ORDER BY rowid DESC LIMIT {MAX_ROWS}"
        )
        with self._connection() as connection:
            rows = connection.execute(query, values).fetchall()
        return [ParagraphJob(*row) for row in reversed(rows)]

    @staticmethod
    def active_jobs(store: JobStore, key: ParagraphKey) -> list[str]:
        """Return active jobs of a paragraph, also after an interrupted submission."""
        note, paragraph = key
        active = [row.job_id for row in store.unfinished()[:MAX_ROWS]]
        origins = store.origins(active)
        return [
            job_id
            for job_id in active
            if job_id in origins
            and origins[job_id].cell_id == paragraph
            and origins[job_id].notebook.startswith(f"{ORIGIN}{note}/")
        ]

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        make_private(self._path.parent)
        connection = sqlite3.connect(self._path, timeout=10.0)
        try:
            with connection:
                connection.execute(_SCHEMA)
                yield connection
        finally:
            connection.close()
