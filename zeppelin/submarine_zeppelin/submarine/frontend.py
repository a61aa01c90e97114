"""Front end of commands in a paragraph, and the job session that it uses.

The note is the program, messages and jobs appear in the paragraph, and Stop acts as Ctrl-C.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from submarine_jobs.client import Job, Session
from submarine_jobs.config import Config
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import (
    INTERRUPTED,
    SUCCESS,
    CellFrontend,
    JobDisplays,
    LiveCards,
    Outcome,
)
from submarine_jobs.model import JobSpec, fill_spec, resolve_roles
from submarine_jobs.program import Bundle, Cell, CellCollection, DocumentCell
from submarine_runtime.protocol import JobRecord
from submarine_runtime.translation import _
from submarine_zeppelin.accounts import child_environment, paragraph_config, shared_session
from submarine_zeppelin.interface import Context, ParagraphKey
from submarine_zeppelin.local import pack_session_values
from submarine_zeppelin.notes import (
    Paragraph,
    build_note_bundle,
    collect_cells,
    export_notebook,
    mark_raised,
    note_directory,
    notebook_stem,
    other_python_cells,
    shell_files,
    write_notebook,
)
from submarine_zeppelin.submarine.job_index import ORIGIN, RUN, ParagraphJob, ParagraphJobIndex
from submarine_zeppelin.submarine.paragraph_publisher import ParagraphPublisher

log = logging.getLogger(__name__)
_NO_PROGRAM = _(
    "raise SystemExit('This note has no %submarine.python paragraph. Use --worker_launch_cmd.')"
)
#: MIME type that describes a workflow run in a display.
WORKFLOW = "application/vnd.submarine.workflow.v1+json"
#: Timeout in seconds for the final update of a card.
_FINAL_UPDATE = 20.0
_lock = threading.Lock()
_paragraph_locks: dict[ParagraphKey, threading.Lock] = {}


class ZeppelinFrontend(CellFrontend):
    """Front end of one run of a paragraph; see the base class."""

    kind = "zeppelin"

    def __init__(
        self,
        context: Context,
        properties: Mapping[str, str],
        note: list[Paragraph],
        publisher: ParagraphPublisher,
        live: LiveCards,
        session_id: str,
    ) -> None:
        super().__init__(JobDisplays(publisher, live))
        publisher.on_gone = self.displays.close
        self.context = context
        self.properties = properties
        self.note = note
        self.publisher = publisher
        self._session_id = session_id
        self._notebook: Path | None = None
        #: Active workflow runs that the paragraph shows.
        self.runs: set[str] = set()
        #: During a submission: the session, and the paragraph's earlier jobs.
        self.submitting: tuple[Session, set[str]] | None = None

    @property
    def collection(self) -> CellCollection:  # type: ignore[override]
        """Current Python paragraphs of the note."""
        found = collect_cells(self.note)
        mark_raised(found, self.context.note_id, self.note)
        if not found and shell_files(self.note):
            found.add(Cell(None, _NO_PROGRAM, label="[ ]"))
        return found

    @property
    def history(self) -> Sequence[DocumentCell]:
        """Python paragraphs outside the program, which may define missing names."""
        return other_python_cells(self.note)

    @property
    def notebook_name(self) -> str | None:
        """Id and name of the note, or the path of its exported notebook for workflows."""
        if self._notebook is not None:
            return str(self._notebook)
        name = self.context.note_name.replace("/", " ").strip() or self.context.note_id
        return f"{ORIGIN}{self.context.note_id}/{name}.zpln"

    @property
    def launching_cell(self) -> str | None:
        """Id of the paragraph."""
        return self.context.paragraph_id

    def cells_bundle(self, program: str) -> Bundle:
        """Build the bundle of the note, with its shell files."""
        return build_note_bundle(self.note, self.collection, program)

    def read_config(self, options: Mapping[str, Any] | None = None) -> Config:
        """Return the configuration of the paragraph; see ``paragraph_config``."""
        return paragraph_config(self.properties, self.context.user, options)

    def session(self, config: Config) -> Session:
        """Return a session that does not submit a job of this paragraph twice."""
        return ParagraphSession(shared_session(config), self)

    def packed_values(self, names: Sequence[str]) -> bytes:
        """Pack values of the note's Python session."""
        context = self.context
        return pack_session_values(self._session_id, context.note_id, context.user, names)

    @property
    def numbering(self) -> tuple[int, str]:
        """Line number of the first line in the editor, and number of the paragraph."""
        text = self.context.text.replace("\r\n", "\n")
        first = text[: len(text) - len(text.lstrip())].count("\n") + 1
        own = [item for item in self.note if item.paragraph_id == self.context.paragraph_id]
        return first, str(own[0].number) if own else ""

    def export_note(self) -> None:
        """Export the note as a notebook for the workflow commands."""
        context = self.context
        exported = export_notebook(self.note, context.note_id)
        folder = note_directory(self.config().profile.state_dir, context.note_id)
        self._notebook = write_notebook(
            exported, folder, notebook_stem(context.note_name, context.note_id)
        )
        for line in exported.left_out:
            log.info("note %s: %s", context.note_id, line)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment with which child programs act as this paragraph."""
        return child_environment(self.properties, self.config())

    def add_output(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """Show a bundle that may be updated after the run, and record a workflow run."""
        self._record_run(bundle)
        update = super().add_output(bundle)

        def renew(newer: Mapping[str, Any]) -> None:
            if update is not None:
                update(newer)
            self._record_run(newer)

        return renew

    def _record_run(self, bundle: Mapping[str, Any]) -> None:
        """Record the workflow run of a display in the index, for use after a restart."""
        shown = bundle.get(WORKFLOW)
        run = shown.get("run") if isinstance(shown, Mapping) else None
        if not isinstance(shown, Mapping) or not isinstance(run, str):
            return
        context, profile = self.context, self.config().profile
        index = ParagraphJobIndex.of(profile)
        if shown.get("ended"):
            self.runs.discard(run)
            index.mark_final(RUN + run)
        elif run not in self.runs:
            self.runs.add(run)
            place = context.note_id, context.paragraph_id, context.user
            index.put(ParagraphJob(RUN + run, *place, profile.name))

    def add_html(self, html: str) -> None:
        """Show HTML in which all text is escaped."""
        self.displays.add_output({"text/html": html})

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Add text of a log, with ANSI colors."""
        self.publisher.write_log(self._filters[stream].feed(data))

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show and update the job's card until the job has ended."""
        record = super().watch(job, on_interrupt=on_interrupt, log=log)
        self.publisher.wait_final(job, _FINAL_UPDATE)
        return record

    def show(self, job: Job) -> None:
        """Show the job's card and update it until the job has ended, also after this run."""
        if not self.displays.shown_in_cell(job):
            self.displays.show(job)
        self.publisher.wait_final(job, _FINAL_UPDATE)

    def show_outcome(self, outcome: Outcome) -> None:
        """Show the result of a command."""
        job = outcome.job
        if job is None or outcome.as_json or outcome.exit_code == INTERRUPTED:
            super().show_outcome(outcome)
            return
        if outcome.exit_code != SUCCESS and not self.displays.shown_in_cell(job):
            self.say(outcome.text)
        self.show(job)

    def cancel_interrupted_submit(self) -> None:
        """Cancel a job after an interrupted submission, if the job has reached the cluster."""
        if self.submitting is None:
            return
        session, before = self.submitting
        self.submitting = None
        for job_id in ParagraphJobIndex.active_jobs(session.store, self.context.key):
            if job_id not in before:
                self.say(_("{job_id} was being submitted and is cancelled.").format(job_id=job_id))
                session.job(job_id).cancel(_("stopped in Zeppelin"))


class ParagraphSession(Session):
    """Session that does not submit a job again while the same job of the paragraph is active.

    Zeppelin repeats calls that seem to have failed, and users run paragraphs again.
    """

    def __init__(self, shared: Session, frontend: ZeppelinFrontend) -> None:
        super().__init__(shared.profile)
        self.store = shared.store
        self._backends = shared._backends
        self.__dict__["watcher"] = shared.watcher
        self._frontend = frontend

    @property
    def notebook(self) -> tuple[str, ...]:
        """Id of the note, as origin of jobs."""
        return (f"{ORIGIN}{self._frontend.context.note_id}",)

    def submit(self, spec: JobSpec, bundle: Bundle | None, *rest: Any, **more: Any) -> Job:
        """Submit a job, or return the same job of this paragraph if it is active."""
        key = self._frontend.context.key
        with _lock:
            paragraph_lock = _paragraph_locks.setdefault(key, threading.Lock())
        with paragraph_lock:
            index = ParagraphJobIndex.of(self.profile)
            found = self._find_active(spec, index)
            if found is not None:
                self._frontend.say(
                    _(
                        "{id} of this paragraph is the same job and has not ended, so no job "
                        "was submitted. Cancel it first to submit the job again."
                    ).format(id=found.id)
                )
                self._frontend.publisher.started = True
                return found
            self._frontend.submitting = (self, set(index.active_jobs(self.store, key)))
            job = super().submit(spec, bundle, *rest, **more)
            self._frontend.submitting = None
            self._frontend.publisher.started = True
            index.put(self._frontend.publisher.index_row(job))
            return job

    def _find_active(self, spec: JobSpec, index: ParagraphJobIndex) -> Job | None:
        spec_bytes = fill_spec(resolve_roles(spec)).to_bytes()
        for job_id in index.active_jobs(self.store, self._frontend.context.key):
            try:
                job = self.job(job_id)
                if job.directory.spec().to_bytes() == spec_bytes and not job.record().state.ended:
                    return job
            except (SubmarineError, OSError, ValueError, KeyError):
                continue
        return None
