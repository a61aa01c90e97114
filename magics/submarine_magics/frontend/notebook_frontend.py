"""The notebook as a front end: its cells and variables, output, questions and job cards."""

from __future__ import annotations

import contextlib
import copy
import getpass
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.frontends import CellFrontend, JobDisplays, TerminalFrontend
from submarine_jobs.program import Bundle, Cell, CellCollection, DocumentCell, build_bundle
from submarine_jobs.text import printable
from submarine_magics.cells import NotebookCells
from submarine_magics.execution import Executions, bind
from submarine_magics.frontend.cell_output import CellOutput
from submarine_magics.jobs import KernelJobs
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_runtime.protocol import JobRecord

#: Maximum bytes of a log in one output: front ends freeze on much more.
MAX_LOG_BYTES = 1 << 20


class OutputLimitReached(Exception):  # noqa: N818 - not an error: ends a long output
    """A log is longer than ``MAX_LOG_BYTES``."""


class NotebookFrontend(CellFrontend):
    """The front end of one kernel; ``Frontend`` documents the methods."""

    kind = "notebook"

    def __init__(self, shell: InteractiveShell, cells: NotebookCells) -> None:
        super().__init__(JobDisplays(CellOutput(shell)))
        self.shell = shell
        self._cells = cells
        self._paragraph: Cell | None = None
        self._with_paragraph: CellCollection | None = None
        self._written = 0

    @property
    def collection(self) -> CellCollection:  # type: ignore[override]
        """The cells of this kernel; during ``%%submarine run`` with the text below it."""
        if self._with_paragraph is not None:
            return self._with_paragraph
        return self._cells.collection

    @property
    def namespace(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The notebook's variables, for ``--with``."""
        namespace: Mapping[str, Any] = self.shell.user_ns
        return namespace

    @property
    def interactive(self) -> bool:  # type: ignore[override]
        """Whether the front end allows questions; False in headless execution."""
        kernel = getattr(self.shell, "kernel", None)
        if kernel is None:
            return sys.stdin is not None and sys.stdin.isatty()
        return bool(getattr(kernel, "_allow_stdin", False))

    @property
    def history(self) -> list[DocumentCell]:
        """Cells executed in this session, oldest first."""
        manager = self.shell.history_manager
        sources = list(manager.input_hist_raw) if manager is not None else []
        return [
            DocumentCell(None, source, f"[{count}]", count, self._cells.tags_of(f"[{count}]"))
            for count, source in enumerate(sources)
            if source.strip()
        ]

    @contextlib.contextmanager
    def command_context(self, paragraph: Cell | None, *, quiet: bool = False) -> Iterator[None]:
        """Set and reset the state of one command.

        Parameters
        ----------
        paragraph
            The text below ``%%submarine run``.
        quiet
            Show no progress and no card, because the output must be JSON.
        """
        self.begin_command(quiet=quiet)
        self._paragraph, self._written = paragraph, 0
        if paragraph is not None:
            self._with_paragraph = copy.deepcopy(self._cells.collection)
            self._with_paragraph.add(paragraph)
        try:
            yield
        finally:
            self._paragraph = self._with_paragraph = None

    def cells_bundle(self, program: str) -> Bundle:
        """Build the bundle of the collected cells, with the text below ``%%submarine run`` last."""
        cells = self._cells.collection.cells()
        if self._paragraph is not None:
            cells.append(self._paragraph)
        document = self.collection.document
        snapshot = document.snapshot if document is not None else None
        return build_bundle(cells, program=program, notebook=snapshot)

    @property
    def own_jobs(self) -> list[Job]:
        """Jobs that this kernel has started and that have not been handled."""
        return [entry.job for entry in KernelJobs.of(self.shell).unhandled()]

    @property
    def launching_cell(self) -> str | None:
        """Id of the current cell; its output shows the job's card."""
        executions = Executions.of(self.shell)
        current = executions.current if executions is not None else None
        return current.cell_id if current is not None else None

    @property
    def launching_place(self) -> str:
        """Id of the current cell, or its number if the front end sends no id."""
        executions = Executions.of(self.shell)
        current = executions.current if executions is not None else None
        return (current.cell_id or current.label) if current is not None else ""

    def bind(self, job: Job) -> None:
        """Assign ``job`` to the name in ``job = %submarine wait digits``."""
        bind(job)

    def warn(self, text: str) -> None:
        """Print a line to stderr of the cell."""
        print(printable(text, 10_000), file=sys.stderr, flush=True)

    def confirm(self, question: str) -> bool:
        """Ask a question; return False in a headless run."""
        if not self.interactive:
            return False
        return input(f"{printable(question)} [y/N] ").strip().lower() in ("y", "yes")

    def ask_password(self, question: str) -> str | None:
        """Ask in the output of the cell, without echo; None in a headless run.

        ipykernel replaces ``getpass`` by a request to the page; the answer is not saved.
        """
        return getpass.getpass(f"{printable(question)} ") if self.interactive else None

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Write a part of a log.

        Raises
        ------
        OutputLimitReached
            After ``MAX_LOG_BYTES``.
        """
        remaining = MAX_LOG_BYTES - self._written
        self._written += len(data)
        target = sys.stderr if stream == "stderr" else sys.stdout
        target.write(self._filters[stream].feed(data[:remaining]))
        target.flush()
        if self._written > MAX_LOG_BYTES:
            raise OutputLimitReached(
                _(
                    "\n"
                    "The output of a cell shows the first {max_log_bytes} MiB of a log. "
                    "`submarine logs` in a terminal, or Job.log, reads all of it."
                ).format(max_log_bytes=MAX_LOG_BYTES >> 20)
            )

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show the job's card and update it until the job has ended; in a terminal also the log."""
        if self.displays.rich or self._quiet:
            return super().watch(job, on_interrupt=on_interrupt, log=log)
        self.watched = True
        self.displays.mark_shown(job)
        terminal = TerminalFrontend(json_asked=False)
        try:
            return terminal.watch(job, on_interrupt=on_interrupt, log=log)
        finally:
            terminal.finish()
