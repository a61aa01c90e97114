"""Which jobs lie in which paragraphs, and whether their last word is shown there.

So that a paragraph's job is found again after the interpreter has been started anew. A small index
beside the core's own (``submarine_jobs.tracking.index``), which knows nothing of what was shown.
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
from submarine_zeppelin.interface import Place

_SCHEMA = """
CREATE TABLE IF NOT EXISTS shown (
    job_id TEXT PRIMARY KEY, note TEXT NOT NULL, paragraph TEXT NOT NULL, user TEXT NOT NULL,
    profile TEXT NOT NULL, final INTEGER NOT NULL
)
"""
#: Rows that are given at most; more jobs of a note are not kept up to date.
MOST = 200
#: Before the name of a workflow's run, where a job's id stands.
RUN = "workflow:"
#: Before a note's id, where the core keeps the path of a notebook.
ORIGIN = "zeppelin:"


class Placed(NamedTuple):
    """A job and the paragraph that shows it; ``user`` is who ran that."""

    job_id: str
    note: str
    paragraph: str
    user: str
    profile: str

    @property
    def run(self) -> str | None:
        """The run of a workflow that is shown in the place of a job."""
        return self.job_id.removeprefix(RUN) if self.job_id.startswith(RUN) else None


class KnownJobs:
    """The index in one state directory; safe from any thread and process."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "zeppelin.sqlite"

    @classmethod
    def of(cls, profile: Profile) -> KnownJobs:
        """The one of all users: a paragraph shows one thing, whoever ran it."""
        return cls(common_state_dir(profile))

    def put(self, placed: Placed) -> None:
        """A job is in a paragraph now, its end not yet shown."""
        with self._connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO shown VALUES (?, ?, ?, ?, ?, 0)", tuple(placed)
            )

    def close(self, job_id: str, place: Place | None = None) -> None:
        """A job's last word is shown in a paragraph; without one, nobody can be shown it."""
        clause, values = ("AND note = ? AND paragraph = ?", place) if place else ("", ())
        with self._connection() as connection:
            connection.execute(
                f"UPDATE shown SET final = 1 WHERE job_id = ? {clause}",  # noqa: S608
                (job_id, *values),
            )

    def leave(self, place: Place) -> None:
        """A paragraph shows something else now."""
        with self._connection() as connection:
            connection.execute("UPDATE shown SET final = 1 WHERE note = ? AND paragraph = ?", place)

    def left(self, job_id: str, place: Place) -> bool:
        """Whether a paragraph that showed the job shows something else, or its last word, now.

        Another process may have seen to that, where notes or users have processes of their own.
        """
        query = "SELECT final FROM shown WHERE job_id = ? AND note = ? AND paragraph = ?"
        try:
            with self._connection() as connection:
                row = connection.execute(query, (job_id, *place)).fetchone()
        except sqlite3.Error:  # busy: at the next look
            return False
        return row is not None and bool(row[0])

    def open(self, note: str | None = None) -> list[Placed]:
        """Jobs whose end is not shown, of one note or of all, the oldest first."""
        clause, values = ("AND note = ?", (note,)) if note is not None else ("", ())
        query = (
            "SELECT job_id, note, paragraph, user, profile FROM shown WHERE final = 0 "  # noqa: S608
            f"{clause} ORDER BY rowid DESC LIMIT {MOST}"
        )
        with self._connection() as connection:
            rows = connection.execute(query, values).fetchall()
        return [Placed(*row) for row in reversed(rows)]

    @staticmethod
    def going_on(store: JobStore, place: Place) -> list[str]:
        """Jobs of a paragraph that go on, also one whose submit was cut off before ``put``."""
        note, paragraph = place
        going_on = [row.job_id for row in store.going_on()[:MOST]]
        origins = store.origins(going_on)
        return [
            job_id
            for job_id in going_on
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
