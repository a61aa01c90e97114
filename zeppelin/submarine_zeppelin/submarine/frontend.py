"""A paragraph as a front end: its note is the program, its output what is said, Stop its Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from submarine_jobs.client import Job, Session
from submarine_jobs.config import Config
from submarine_jobs.frontends import Frontend
from submarine_jobs.program import Bundle, Cell, CellCollection, DocumentCell
from submarine_jobs.text import TerminalFilter
from submarine_runtime.protocol.record import JobRecord
from submarine_zeppelin.accounts import config_of, environment_of, session_of
from submarine_zeppelin.display import Card, Page, Refresher
from submarine_zeppelin.interface import Context, ParagraphGoneError
from submarine_zeppelin.local import values
from submarine_zeppelin.notes import export, folder_of_note, keep, note as notes, stem_of
from submarine_zeppelin.submarine.job_index import ORIGIN, RUN, KnownJobs, Placed
from submarine_zeppelin.submarine.session import ParagraphSession

log = logging.getLogger(__name__)
_NO_PROGRAM = (
    "raise SystemExit('This note has no %submarine.python paragraph: give --worker_launch_cmd.')"
)
#: The form of a picture in which it says what it shows.
WORKFLOW = "application/vnd.submarine.workflow.v1+json"
#: Seconds for the last drawing of a job that was waited for.
_LAST_DRAWING = 20.0


class ZeppelinFrontend(Frontend):
    """One run of one paragraph; see ``Frontend`` for what each part is for."""

    kind = "zeppelin"
    command = "%submarine"

    def __init__(
        self,
        context: Context,
        properties: Mapping[str, str],
        note: list[notes.Paragraph],
        page: Page,
        refresher: Refresher,
        session_id: str,
    ) -> None:
        super().__init__()
        self.context = context
        self.properties = properties
        self.note = note
        self.page = page
        self._refresher = refresher
        self._session_id = session_id
        self._notebook: Path | None = None
        #: Runs of workflows that go on, as far as the paragraph has shown.
        self.runs: set[str] = set()
        self._filters = {"stdout": TerminalFilter(), "stderr": TerminalFilter()}
        #: While a submit is under way: which jobs the paragraph had before, and their session.
        self.submitting: tuple[Session, set[str]] | None = None

    @property
    def collection(self) -> CellCollection:  # type: ignore[override]
        """The note's Python paragraphs, as they are now."""
        found = notes.collect(self.note)
        notes.mark_raised(found, self.context.note_id, self.note)
        if not found and notes.shell_files(self.note):
            found.add(Cell(None, _NO_PROGRAM, label="[ ]"))
        return found

    @property
    def history(self) -> Sequence[DocumentCell]:
        """Python paragraphs of other interpreters, where a name may be defined."""
        return notes.elsewhere(self.note)

    @property
    def notebook_name(self) -> str | None:
        """The note: its id, and its name as the stem; for workflows its notebook here."""
        if self._notebook is not None:
            return str(self._notebook)
        name = self.context.note_name.replace("/", " ").strip() or self.context.note_id
        return f"{ORIGIN}{self.context.note_id}/{name}.zpln"

    @property
    def launching_cell(self) -> str | None:
        """The paragraph."""
        return self.context.paragraph_id

    def cells_bundle(self, program: str) -> Bundle:
        """The note's program, with its shell files."""
        return notes.bundle_of(self.note, self.collection, program)

    def read_config(self, options: Mapping[str, Any] | None = None) -> Config:
        """As ``config_of``."""
        return config_of(self.properties, self.context.user, options)

    def session(self, config: Config) -> Session:
        """The profile's session, in which a job that this paragraph has running is found again."""
        return ParagraphSession(session_of(config), self)

    def packed_values(self, names: Sequence[str]) -> bytes:
        """As they are in the note's Python session."""
        return values.packed(self._session_id, self.context.note_id, names)

    @property
    def numbering(self) -> tuple[int, str]:
        """The editor's number of the line with the interpreter's name, and the paragraph's."""
        text = self.context.text.replace("\r\n", "\n")
        first = text[: len(text) - len(text.lstrip())].count("\n") + 1
        mine = [item for item in self.note if item.paragraph_id == self.context.paragraph_id]
        return first, str(mine[0].number) if mine else ""

    def write_notebook(self) -> None:
        """Let verbs of workflows find the note as a notebook in a folder of its own."""
        context = self.context
        exported = export(self.note, context.note_id)
        folder = folder_of_note(self.config().profile.state_dir, context.note_id)
        self._notebook = keep(exported, folder, stem_of(context.note_name, context.note_id))
        for line in exported.left_out:
            log.info("note %s: %s", context.note_id, line)

    @property
    def environment(self) -> Mapping[str, str]:
        """What makes other programs of ours act as this paragraph does."""
        return environment_of(self.properties, self.config())

    def picture(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """A picture that the paragraph goes on showing after its end."""
        page = str(bundle.get("text/html") or "")
        if not page:
            return None
        self._remember(bundle)
        place = self.page.picture(page)
        self.page.show()

        def renew(newer: Mapping[str, Any]) -> None:
            place.page = str(newer.get("text/html") or place.page)
            with contextlib.suppress(ParagraphGoneError):
                self.page.show()
            self._remember(newer)

        return renew

    def _remember(self, bundle: Mapping[str, Any]) -> None:
        """Take note of the run that a picture shows, so that another process goes on with it."""
        shown = bundle.get(WORKFLOW)
        run = shown.get("run") if isinstance(shown, Mapping) else None
        if not isinstance(shown, Mapping) or not isinstance(run, str):
            return
        context, profile = self.context, self.config().profile
        known = KnownJobs.of(profile)
        if shown.get("ended"):
            self.runs.discard(run)
            known.close(RUN + run)
        elif run not in self.runs:
            self.runs.add(run)
            place = context.note_id, context.paragraph_id, context.user, profile.name
            known.put(Placed(RUN + run, *place))

    def say(self, text: str) -> None:
        """A line in the paragraph."""
        self.page.say(text)
        self.page.show()

    def renew(self, text: str) -> bool:
        """A step under way, below what is there."""
        self.page.step(text)
        self.page.show()
        return True

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """A piece of a log, in its colours."""
        self.page.write(self._filters[stream].feed(data))
        self.page.show()

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show the job's card and keep it up to date until the job has ended."""
        card = self.show(job)
        record = job.wait(on_interrupt=on_interrupt)
        self._refresher.settle(card, _LAST_DRAWING)
        return record

    def show(self, job: Job) -> Card:
        """Put the job's card into the paragraph; it lives on while the job does."""
        card = self.page.card(job)
        if card.view is None:
            card.hear(job.view())
            if card.final:
                card.measure()
        self.page.show()
        known = KnownJobs.of(job.session.profile)
        if card.final:
            known.close(job.id, self.context.place)
        else:
            known.put(self.placed(job))
            self._refresher.add(
                self.page,
                card,
                lambda: known.close(job.id, self.context.place),
                lambda: known.left(job.id, self.context.place),
            )
        return card

    def cancel_cut_off(self) -> None:
        """End a job whose submit was interrupted: it may have reached the cluster."""
        if self.submitting is None:
            return
        session, before = self.submitting
        self.submitting = None
        for job_id in KnownJobs.going_on(session.store, self.context.place):
            if job_id not in before:
                self.page.say(f"{job_id} was being submitted and is cancelled.")
                session.job(job_id).cancel("stopped in Zeppelin")

    def placed(self, job: Job) -> Placed:
        """Where the job is shown."""
        context = self.context
        profile = job.session.profile.name
        return Placed(job.id, context.note_id, context.paragraph_id, context.user, profile)
