"""Who speaks: the command line, a notebook, Python; what a verb may ask of it.

``Frontend`` is itself the silent one of a Python program; the others change what is theirs. A verb
never prints and never reads the terminal: it asks its front end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from submarine_jobs import client, config, outputs
from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_jobs.config import Config, ConfigFile
    from submarine_jobs.program import Bundle, CellCollection, DocumentCell
    from submarine_runtime.protocol.record import JobRecord

MAX_SESSIONS = 8
#: Characters that each front end shows of a line without cutting it.
_LINE = 5000


class Frontend:
    """One who gives commands.

    Attributes
    ----------
    kind
        ``python``, ``cli``, ``notebook``, ``zeppelin``.
    command
        What a person types before a verb, for sentences: ``submarine`` or ``%submarine``.
    interactive
        Whether ``confirm`` reaches a person.
    collection
        Collected cells; None: this front end has no cells.
    namespace
        Variables for ``--with``; None: this front end has none.
    plugin_output
        Where verbs of other packages print; None: straight to this process's own output.
    """

    kind = "python"
    command = "submarine"
    interactive = False
    collection: CellCollection | None = None
    namespace: Mapping[str, Any] | None = None
    plugin_output: TextIO | None = None

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which other programs of ours, which a verb starts here, act as this one."""
        return {}

    @property
    def history(self) -> Sequence[DocumentCell]:
        """Cells executed in this session, oldest first: where a missing name may be defined."""
        return ()

    def config(self, options: Mapping[str, Any] | None = None) -> Config:
        """The configuration in force; asks whether to trust a project's file, where it can ask.

        Raises
        ------
        UntrustedConfigError
            If the project's file has keys that the user has not confirmed.
        """
        while True:
            try:
                return self.read_config(options)
            except config.UntrustedConfigError as error:
                if not self.interactive or not self.confirm_file(error.file):
                    raise
                config.trust(error.file)

    def read_config(self, options: Mapping[str, Any] | None = None) -> Config:
        """The configuration in force for a command with these options; asks nothing."""
        return config.load_config(options)

    def session(self, config: Config) -> client.Session:
        """The session of a profile, the same object for the same profile."""
        key = repr(config.profile)
        if key not in self._sessions:
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[key] = client.Session(config.profile)
        return self._sessions[key]

    def cells_bundle(self, program: str) -> Bundle:
        """The bundle of the collected cells; only where ``collection`` is not None."""
        # cost: the merging of cells, which few front ends have.
        from submarine_jobs.program import build_bundle

        if self.collection is None:
            raise RuntimeError("this front end has no cells")
        document = self.collection.document
        snapshot = document.snapshot if document is not None else None
        return build_bundle(self.collection.cells(), program=program, notebook=snapshot)

    @property
    def notebook_name(self) -> str | None:
        """Name of the notebook document, where there is one."""
        document = self.collection.document if self.collection is not None else None
        return str(document.path) if document is not None else None

    @property
    def own_jobs(self) -> Sequence[Job] | None:
        """The jobs that a bare ``wait`` means; None where none are remembered."""
        return None

    @property
    def launching_cell(self) -> str | None:
        """Id of the cell whose command is being executed, where there is one."""
        return None

    def packed_values(self, names: Sequence[str]) -> bytes:
        """The values of ``--with``, ready to travel.

        Raises
        ------
        UsageError
            If this front end has no variables, or one is not there or cannot travel.
        """
        if self.namespace is None:
            raise UsageError(
                _("--with sends variables of a notebook, and there is none here."),
                _("Run it as %submarine run in a notebook, or pass --env NAME=VALUE."),
            )
        return outputs.send_values(names, self.namespace)

    @property
    def launching_place(self) -> str:
        """What tells that cell from others in a second attempt of the same run."""
        return self.launching_cell or ""

    def bind(self, job: Job) -> None:
        """Bind the name that the command's value is assigned to, before the command waits.

        Only a notebook has such names: ``job = %submarine wait digits``.
        """

    def say(self, text: str) -> None:
        """Show a line while a command is under way: a warning, a step. Silent here."""

    def renew(self, text: str) -> bool:
        """Show ``text`` in place of what the last call showed; empty: take it away.

        Returns
        -------
        bool
            Whether this front end can; where it cannot, nothing is shown. Silent here.
        """
        return True

    def picture(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """Put a picture into the output now, MIME type -> data.

        Returns
        -------
        Callable or None
            Puts another one in its place, from any thread, also when the command has long ended;
            None where outputs are text alone: nothing is shown then.
        """
        return None

    def confirm_file(self, file: ConfigFile) -> bool:
        """Show what a project's file sets, and ask whether the user trusts it."""
        for line in config.summary(file).splitlines():
            for start in range(0, len(line), _LINE):
                self.say(line[start : start + _LINE])
        return self.confirm(
            _("These keys decide what runs on this machine and what it trusts. Trust the file?")
        )

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question; no where nobody can be asked."""
        return False

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Show a piece of a job's log as it comes; raw and untrusted bytes of ``stream``."""

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Wait for the end of a job in this front end's own way.

        Parameters
        ----------
        on_interrupt
            ``detach`` leaves the job alone when the waiting is interrupted, ``cancel`` ends it.
        log
            Show its log while waiting.

        Raises
        ------
        KeyboardInterrupt
            When interrupted; the front end has then said what became of the job.
        """
        return job.wait(on_interrupt=on_interrupt)
