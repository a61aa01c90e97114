"""Interface between commands and front ends: command line, notebook, Python program.

The base class is the front end without output, for Python programs; the others override methods.
A command does not print and does not read the terminal: it calls its front end.
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
    from submarine_runtime.protocol import JobRecord

MAX_SESSIONS = 8
#: Length of a line that every front end shows completely, in characters.
_LINE = 5000


class Frontend:
    """Source of commands, and display of their progress.

    Attributes
    ----------
    kind
        ``python``, ``cli``, ``notebook``, ``zeppelin``.
    command
        Prefix of a command in messages: ``submarine`` or ``%submarine``.
    interactive
        Whether ``confirm`` can ask the user.
    collection
        Collected cells; None: the front end has no cells.
    namespace
        Variables for ``--with``; None: the front end has no variables.
    files
        Files of the program by name, which a client has sent; None: it names a file here.
    claim
        Called with the id of a new job before the job can run; see ``submit``.
    plugin_output
        Output of commands of other packages; None: stdout of the process.
    """

    kind = "python"
    command = "submarine"
    interactive = False
    collection: CellCollection | None = None
    namespace: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] | None = None
    claim: Callable[[str], bool] | None = None
    plugin_output: TextIO | None = None

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables for Submarine programs that a command starts."""
        return {}

    @property
    def history(self) -> Sequence[DocumentCell]:
        """Executed cells of this session, oldest first; they may define a missing name."""
        return ()

    def config(self, options: Mapping[str, Any] | None = None) -> Config:
        """Return the configuration; if possible, ask whether to trust the file of a project.

        Raises
        ------
        UntrustedConfigError
            If the file of the project has keys that the user has not confirmed.
        """
        while True:
            try:
                return self.read_config(options)
            except config.UntrustedConfigError as error:
                if not self.interactive or not self.confirm_file(error.file):
                    raise
                config.trust(error.file)

    def read_config(self, options: Mapping[str, Any] | None = None) -> Config:
        """Return the configuration for a command with these options, without questions."""
        return config.load_config(options)

    def session(self, config: Config) -> client.Session:
        """Return the session of a profile, the same object for the same profile."""
        key = repr(config.profile)
        if key not in self._sessions:
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[key] = client.Session(config.profile)
        return self._sessions[key]

    def cells_bundle(self, program: str) -> Bundle:
        """Return the bundle of the collected cells; ``collection`` must not be None."""
        # cost: the modules that merge cells, which few front ends need.
        from submarine_jobs.program import build_bundle

        if self.collection is None:
            raise RuntimeError("this front end has no cells")
        document = self.collection.document
        snapshot = document.snapshot if document is not None else None
        return build_bundle(self.collection.cells(), program=program, notebook=snapshot)

    @property
    def notebook_name(self) -> str | None:
        """Name of the notebook document; None if there is none."""
        document = self.collection.document if self.collection is not None else None
        return str(document.path) if document is not None else None

    @property
    def own_jobs(self) -> Sequence[Job] | None:
        """The jobs of a ``wait`` without arguments; None if the front end does not list them."""
        return None

    @property
    def launching_cell(self) -> str | None:
        """Id of the cell that executes the command; None if there is none."""
        return None

    def packed_values(self, names: Sequence[str]) -> bytes:
        """Return the serialized values of ``--with``.

        Raises
        ------
        UsageError
            If the front end has no variables, or a variable is missing or cannot be serialized.
        """
        if self.namespace is None:
            raise UsageError(
                _("--with sends variables of a notebook, and there is none here."),
                _("Run it as %submarine run in a notebook, or pass --env NAME=VALUE."),
            )
        return outputs.send_values(names, self.namespace)

    @property
    def launching_place(self) -> str:
        """Key that identifies the cell in a second attempt of the same run."""
        return self.launching_cell or ""

    def bind(self, job: Job) -> None:
        """Assign the job to the variable of the command before the command waits.

        Only a notebook has such a variable: ``job = %submarine wait digits``.
        """

    def say(self, text: str) -> None:
        """Show a line while the command runs: a warning or a step. The base class shows nothing."""

    def show_progress(self, text: str) -> bool:
        """Show ``text`` in place of the text of the last call; an empty text removes it.

        Returns
        -------
        bool
            False if the front end cannot replace text; then it shows nothing. The base class
            returns True and shows nothing.
        """
        return True

    def add_output(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """Add an output to the cell now: MIME type -> data.

        Returns
        -------
        Callable or None
            Replaces the output, from any thread, also after the end of the command. None if the
            front end supports only text; then nothing is shown.
        """
        return None

    def confirm_file(self, file: ConfigFile) -> bool:
        """Show the values in the file of a project, and ask whether the user trusts it."""
        for line in config.summary(file).splitlines():
            for start in range(0, len(line), _LINE):
                self.say(line[start : start + _LINE])
        return self.confirm(
            _("These keys decide what runs on this machine and what it trusts. Trust the file?")
        )

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question; False if the front end cannot ask."""
        return False

    def ask_password(self, question: str) -> str | None:
        """Ask for a password without showing it; None if the front end cannot ask."""
        return None

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Show new bytes of a job's log; ``data`` is untrusted."""

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Wait for the end of a job, and show its state.

        Parameters
        ----------
        on_interrupt
            Effect of an interrupt on the job: ``detach`` (none) or ``cancel``.
        log
            Whether to show the log of the job.

        Raises
        ------
        KeyboardInterrupt
            After an interrupt; the front end has shown its effect on the job.
        """
        return job.wait(on_interrupt=on_interrupt)
