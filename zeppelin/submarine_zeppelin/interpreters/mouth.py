"""A paragraph as a mouth: its note is the program, its output what is said, Stop its Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from submarine_jobs.bundle import Bundle
from submarine_jobs.cells import Cell, CellCollection
from submarine_jobs.commands import Mouth
from submarine_jobs.commands.terminal import TerminalFilter
from submarine_jobs.config import Config, load_config
from submarine_jobs.coordinator_orders import with_extra_roles
from submarine_jobs.errors import SubmarineError
from submarine_jobs.job import Job
from submarine_jobs.notebook import DocumentCell
from submarine_jobs.placeholders import fill_spec
from submarine_jobs.session import Session
from submarine_jobs.spec import JobSpec
from submarine_runtime.protocol.record import JobRecord
from submarine_zeppelin import properties as settings
from submarine_zeppelin.interpreters import notes, values
from submarine_zeppelin.interpreters.known_jobs import ORIGIN, KnownJobs, Placed
from submarine_zeppelin.interpreters.page import Card, Page
from submarine_zeppelin.interpreters.refresher import Refresher
from submarine_zeppelin.paragraph import Context

_NO_PROGRAM = (
    "raise SystemExit('This note has no %submarine.python paragraph: give --worker_launch_cmd.')"
)
_lock = threading.Lock()
_sessions: dict[str, Session] = {}
_submitting: dict[str, threading.Lock] = {}
#: Seconds for the last drawing of a job that was waited for.
_LAST_DRAWING = 20.0


def session_of(config: Config) -> Session:
    """The one session of a profile in this process: one watcher, one connection to a cluster."""
    with _lock:
        return _sessions.setdefault(repr(config.profile), Session(config.profile))


def config_of(
    properties: Mapping[str, str], user: str, options: Mapping[str, Any] | None = None
) -> Config:
    """The configuration in force: the paragraph's options over the interpreter's settings."""
    from submarine_zeppelin.users import cluster_user

    given = {key: value for key, value in (options or {}).items() if value is not None}
    found = {
        "profile": settings.text(properties, "submarine.profile"),
        "queue": settings.text(properties, "submarine.yarn.queue"),
        "hadoop_conf_dir": settings.text(properties, "SUBMARINE_HADOOP_CONF_DIR"),
        "job_root": settings.text(properties, "submarine.algorithm.hdfs.path").replace(
            "${username}", user
        ),
    }
    config = load_config({**{key: value for key, value in found.items() if value}, **given})
    profile = config.profile
    kerberos = _wants_kerberos(config)
    actor = cluster_user(user, properties, backend=profile.backend, kerberos=kerberos)
    return replace(config, profile=replace(profile, user=actor)) if actor else config


def _wants_kerberos(config: Config) -> bool:
    from submarine_jobs.backends.yarn.hadoopconf import HadoopConf

    directory = config.profile.hadoop_conf_dir
    if config.profile.backend != "yarn" or directory is None:
        return False
    try:
        return HadoopConf(directory).kerberos
    except (SubmarineError, OSError):
        return False  # the verb itself says what is wrong with it


class ZeppelinMouth(Mouth):
    """One run of one paragraph; see ``Mouth`` for what each part is for."""

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
        self._filters = {"stdout": TerminalFilter(), "stderr": TerminalFilter()}
        #: While a submit is under way: which jobs the paragraph had before, and their session.
        self.submitting: tuple[Session, set[str]] | None = None

    @property
    def collection(self) -> CellCollection:  # type: ignore[override]
        """The note's Python paragraphs, as they are now."""
        found = notes.collect(self.note)
        if not found and notes.shell_files(self.note):
            found.add(Cell(None, _NO_PROGRAM, label="[ ]"))
        return found

    @property
    def history(self) -> Sequence[DocumentCell]:
        """Python paragraphs of other interpreters, where a name may be defined."""
        return notes.elsewhere(self.note)

    @property
    def notebook_name(self) -> str | None:
        """The note: its id, and its name as the stem."""
        name = self.context.note_name.replace("/", " ").strip() or self.context.note_id
        return f"{ORIGIN}{self.context.note_id}/{name}.zpln"

    @property
    def launching_cell(self) -> str | None:
        """The paragraph."""
        return self.context.paragraph_id

    def cells_bundle(self, program: str) -> Bundle:
        """The note's program, with its shell files."""
        return notes.bundle_of(self.note, self.collection, program)

    def config(self, options: Mapping[str, Any] | None = None) -> Config:
        """As ``config_of``."""
        return config_of(self.properties, self.context.user, options)

    def session(self, config: Config) -> Session:
        """The profile's session, in which a job that this paragraph has running is found again."""
        return ParagraphSession(session_of(config), self)

    def packed_values(self, names: Sequence[str]) -> bytes:
        """As they are in the note's Python session."""
        return values.packed(self._session_id, self.context.note_id, names)

    def say(self, text: str) -> None:
        """A line in the paragraph."""
        self.page.say(text)
        self.page.show()

    def renew(self, text: str) -> bool:
        """Steps under way are not shown: a paragraph's output is sent as a whole."""
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
        known = KnownJobs(job.session.profile.state_dir)
        if card.final:
            known.close(job.id)
        else:
            known.put(self.placed(job))
            self._refresher.add(self.page, card, lambda: known.close(job.id))
        return card

    def cancel_cut_off(self) -> None:
        """End a job whose submit was interrupted: it may have reached the cluster."""
        if self.submitting is None:
            return
        session, before = self.submitting
        self.submitting = None
        for job_id in KnownJobs.going_on(session.store, self.context.paragraph_id):
            if job_id not in before:
                self.page.say(f"{job_id} was being submitted and is cancelled.")
                session.job(job_id).cancel("stopped in Zeppelin")

    def placed(self, job: Job) -> Placed:
        """Where the job is shown."""
        context = self.context
        profile = job.session.profile.name
        return Placed(job.id, context.note_id, context.paragraph_id, context.user, profile)


class ParagraphSession(Session):
    """A session in which one paragraph submits the same job once while that is under way.

    Zeppelin asks again for what it believes to have failed, and so do people.
    """

    def __init__(self, shared: Session, mouth: ZeppelinMouth) -> None:
        super().__init__(shared.profile)
        self.store = shared.store
        self._backends = shared._backends
        self.__dict__["watcher"] = shared.watcher
        self._mouth = mouth

    def submit(self, spec: JobSpec, bundle: Bundle | None, *rest: Any, **more: Any) -> Job:
        """As ``Session.submit``, unless this paragraph has the same job running."""
        paragraph = self._mouth.context.paragraph_id
        with _lock:
            turn = _submitting.setdefault(paragraph, threading.Lock())
        with turn:
            known = KnownJobs(self.profile.state_dir)
            found = self._running(spec, known)
            if found is not None:
                self._mouth.say(
                    f"{found.id} of this paragraph is the same and has not ended: it is shown, and "
                    "nothing was submitted. Cancel it first to start anew."
                )
                self._mouth.page.started = True
                return found
            self._mouth.submitting = (self, set(known.going_on(self.store, paragraph)))
            job = super().submit(spec, bundle, *rest, **more)
            self._mouth.submitting = None
            self._mouth.page.started = True
            known.put(self._mouth.placed(job))
            return job

    def _running(self, spec: JobSpec, known: KnownJobs) -> Job | None:
        wanted = fill_spec(with_extra_roles(spec)).to_bytes()
        for job_id in known.going_on(self.store, self._mouth.context.paragraph_id):
            try:
                job = self.job(job_id)
                if job.directory.spec().to_bytes() == wanted and not job.record().state.ended:
                    return job
            except (SubmarineError, OSError, ValueError, KeyError):
                continue
        return None
