"""Finds the jobs of paragraphs again after the interpreter has been started anew.

A paragraph shows its job until the end, whoever watched before: what the index of shown jobs has
open is put back into its paragraphs, in the background. Starts no job.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping

from submarine_jobs.client import Job
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.accounts import config_of, session_of
from submarine_zeppelin.display import Page, Refresher
from submarine_zeppelin.interface import (
    Context,
    ParagraphGoneError,
    Place,
    Server,
    properties as settings,
)
from submarine_zeppelin.submarine.job_index import KnownJobs, Placed

log = logging.getLogger(__name__)


class Resumer:
    """The one of an interpreter.

    Parameters
    ----------
    place
        The ids of the group and the session: a note that has one of its own stands in them.
    adopt
        Told of a page that was made for a paragraph; says whether it may be shown.
    show_run
        Shows the run of a workflow in a page; whether it has ended.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        server: Server,
        refresher: Refresher,
        place: str,
        adopt: Callable[[Place, Page], bool],
        show_run: Callable[[Page, Placed], bool],
    ) -> None:
        self._properties = properties
        self._server = server
        self._refresher = refresher
        self._place = place
        self._adopt = adopt
        self._show_run = show_run
        self._lock = threading.Lock()
        self._users: set[str] = set()

    def resume(self, context: Context) -> None:
        """A paragraph is run: it shows something new, and others may have to be taken up again.

        With a user's first one those of all notes, later those of its note. Where notes have
        sessions or processes of their own, another note's jobs are for those to take up.
        """
        try:
            known = self._known(context.user)
        except SubmarineError as error:
            log.info("no jobs are looked for: %s", error)
            return
        known.leave(context.place)
        with self._lock:
            first = context.user not in self._users and context.note_id not in self._place
            self._users.add(context.user)
        rows = known.open(None if first else context.note_id)
        rows = [row for row in rows if row.user == context.user]
        if rows:
            threading.Thread(
                target=self._take_up, args=(rows, known), daemon=True, name="submarine-resume"
            ).start()

    def jobs_of(self, context: Context) -> list[Job]:
        """The jobs that a paragraph shows or had begun, their ends not yet shown."""
        config = config_of(self._properties, context.user)
        session = session_of(config)
        known = KnownJobs.of(config.profile)
        rows = [row for row in known.open(context.note_id) if row.paragraph == context.paragraph_id]
        rows = [row for row in rows if row.run is None and row.user == context.user]
        ids = dict.fromkeys(
            [row.job_id for row in rows] + known.going_on(session.store, context.place)
        )
        return [session.job(job_id) for job_id in ids]

    def _known(self, user: str) -> KnownJobs:
        return KnownJobs.of(config_of(self._properties, user).profile)

    def _take_up(self, rows: list[Placed], known: KnownJobs) -> None:
        by_place: dict[Place, list[Placed]] = {}
        for row in rows:
            by_place.setdefault((row.note, row.paragraph), []).append(row)
        for place, placed in by_place.items():
            try:
                self._show(place, placed, known)
            except ParagraphGoneError:
                for row in placed:
                    known.close(row.job_id)
            except (SubmarineError, OSError) as error:
                log.info("the jobs of paragraph %s are not shown: %s", place[1], error)

    def _show(self, place: Place, placed: list[Placed], known: KnownJobs) -> None:
        context = Context(*place, user=placed[0].user)
        page = Page(self._server.output(context), settings.output_limit(self._properties))
        if not self._adopt(place, page):
            return
        page.started = True
        try:
            self._fill(page, place, placed, known)
        except ParagraphGoneError:
            if not page.left:  # else the run that has it now has told the index itself
                raise

    def _fill(self, page: Page, place: Place, placed: list[Placed], known: KnownJobs) -> None:
        cards = []
        for row in placed:
            if row.run is not None:
                if self._show_run(page, row):
                    known.close(row.job_id)
                continue
            config = config_of(self._properties, row.user, {"profile": row.profile})
            job = session_of(config).job(row.job_id)
            card = page.card(job)
            card.hear(job.view())
            if card.final:
                card.measure()
            cards.append(card)
        page.show()
        for card in cards:
            if card.final:
                known.close(card.job.id, place)
                continue
            self._refresher.add(
                page,
                card,
                functools.partial(known.close, card.job.id, place),
                functools.partial(known.left, card.job.id, place),
            )
