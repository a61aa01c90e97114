"""Show the jobs of paragraphs again after a restart of the interpreter.

If the index contains jobs without a displayed final state, their paragraphs show them again. This
runs in the background and starts no jobs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from submarine_jobs.client import Job
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.accounts import paragraph_config, shared_session
from submarine_zeppelin.interface import Context, ParagraphGoneError, ParagraphKey
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.job_index import ParagraphJob, ParagraphJobIndex

log = logging.getLogger(__name__)


class JobRecovery:
    """Shows unfinished jobs of one interpreter again.

    Parameters
    ----------
    session_ids
        Ids of the group and the session. They contain the note's id if notes have own sessions.
    register
        Returns a front end that shows the jobs of a paragraph; None if it has been run since.
    show_run
        Shows a workflow run by its name and returns whether it has ended.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        session_ids: str,
        register: Callable[[Context], ZeppelinFrontend | None],
        show_run: Callable[[ZeppelinFrontend, str], bool],
    ) -> None:
        self._properties = properties
        self._session_ids = session_ids
        self._register = register
        self._show_run = show_run
        self._lock = threading.Lock()
        self._users: set[str] = set()

    def resume(self, context: Context) -> None:
        """Clear the index for a paragraph that runs, and show unfinished jobs of other paragraphs.

        The first run of a user shows the jobs of all notes, later runs those of the same note. If
        notes have own sessions or processes, only jobs of the same note are shown.
        """
        try:
            index = self._index(context.user)
        except SubmarineError as error:
            log.info("unfinished jobs are not shown: %s", error)
            return
        index.clear_paragraph(context.key)
        with self._lock:
            first = context.user not in self._users and context.note_id not in self._session_ids
            self._users.add(context.user)
        rows = index.unfinished(None if first else context.note_id)
        rows = [row for row in rows if row.user == context.user]
        if rows:
            threading.Thread(
                target=self._show_again, args=(rows, index), daemon=True, name="submarine-resume"
            ).start()

    def jobs_of(self, context: Context) -> list[Job]:
        """Return the unfinished jobs that a paragraph shows or has started."""
        config = paragraph_config(self._properties, context.user)
        session = shared_session(config)
        index = ParagraphJobIndex.of(config.profile)
        rows = [
            row
            for row in index.unfinished(context.note_id)
            if row.paragraph == context.paragraph_id
        ]
        rows = [row for row in rows if row.run is None and row.user == context.user]
        ids = dict.fromkeys(
            [row.job_id for row in rows] + index.active_jobs(session.store, context.key)
        )
        return [session.job(job_id) for job_id in ids]

    def _index(self, user: str) -> ParagraphJobIndex:
        return ParagraphJobIndex.of(paragraph_config(self._properties, user).profile)

    def _show_again(self, rows: list[ParagraphJob], index: ParagraphJobIndex) -> None:
        by_paragraph: dict[ParagraphKey, list[ParagraphJob]] = {}
        for row in rows:
            by_paragraph.setdefault((row.note, row.paragraph), []).append(row)
        for key, jobs in by_paragraph.items():
            try:
                self._show(key, jobs, index)
            except ParagraphGoneError:
                for row in jobs:
                    index.mark_final(row.job_id)
            except (SubmarineError, OSError) as error:
                log.info("the jobs of paragraph %s are not shown: %s", key[1], error)

    def _show(self, key: ParagraphKey, rows: list[ParagraphJob], index: ParagraphJobIndex) -> None:
        frontend = self._register(Context(*key, user=rows[0].user))
        if frontend is None:
            return
        try:
            for row in rows:
                if row.run is None:
                    config = paragraph_config(self._properties, row.user, {"profile": row.profile})
                    frontend.displays.show(shared_session(config).job(row.job_id))
                elif self._show_run(frontend, row.run):
                    index.mark_final(row.job_id)
        except ParagraphGoneError:
            if not frontend.publisher.superseded:  # otherwise the later run updates the index
                raise
