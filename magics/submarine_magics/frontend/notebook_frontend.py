"""The notebook as a front end: its cells and variables, its way of saying, asking and waiting."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.frontends import Frontend
from submarine_jobs.program import Bundle, Cell, CellCollection, DocumentCell, build_bundle
from submarine_jobs.text import TerminalFilter, printable
from submarine_magics.cells import NotebookCells
from submarine_magics.execution import Executions, bind
from submarine_magics.frontend.cards import LiveDisplays
from submarine_magics.frontend.outcomes import OutputLimitReached

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_runtime.protocol.record import JobRecord

#: Most that one command writes into an output, in bytes; front ends freeze on much more.
MAX_LOG_BYTES = 1 << 20


class NotebookFrontend(Frontend):
    """One kernel's front end; see ``Frontend`` for what each part is for."""

    kind = "notebook"
    command = "%submarine"

    def __init__(self, shell: InteractiveShell, cells: NotebookCells) -> None:
        super().__init__()
        self.shell = shell
        self._cells = cells
        self._paragraph: Cell | None = None
        self._with_paragraph: CellCollection | None = None
        self._written = 0
        #: Whether the present command has waited, so that the output shows a card.
        self.watched = False
        self._quiet = False
        #: Display id of the line that is being renewed.
        self._line: str | None = None
        self._filters = {"stdout": TerminalFilter(), "stderr": TerminalFilter()}
        self.displays = LiveDisplays(shell)

    @property
    def collection(self) -> CellCollection:  # type: ignore[override]
        """The cells of this kernel; during ``%%submarine run`` with the paragraph below it."""
        if self._with_paragraph is not None:
            return self._with_paragraph
        return self._cells.collection

    @property
    def namespace(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The user's variables, for ``--with``."""
        namespace: Mapping[str, Any] = self.shell.user_ns
        return namespace

    @property
    def interactive(self) -> bool:  # type: ignore[override]
        """Whether the front end lets the kernel ask; not in headless execution."""
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
    def speaking(self, paragraph: Cell | None, *, quiet: bool = False) -> Iterator[None]:
        """One command.

        Parameters
        ----------
        paragraph
            The text below ``%%submarine run``.
        quiet
            Show no card while waiting: the output is to be JSON alone.
        """
        self._quiet = quiet
        self._paragraph, self._written, self.watched = paragraph, 0, False
        self._line = self.displays.place = None
        if paragraph is not None:
            self._with_paragraph = copy.deepcopy(self._cells.collection)
            self._with_paragraph.add(paragraph)
        self._filters = {"stdout": TerminalFilter(), "stderr": TerminalFilter()}
        try:
            yield
        finally:
            self._paragraph = self._with_paragraph = None

    def cells_bundle(self, program: str) -> Bundle:
        """The bundle of the collected cells, with the paragraph below ``%%submarine run`` last."""
        cells = self._cells.collection.cells()
        if self._paragraph is not None:
            cells.append(self._paragraph)
        document = self.collection.document
        snapshot = document.snapshot if document is not None else None
        return build_bundle(cells, program=program, notebook=snapshot)

    @property
    def own_jobs(self) -> list[Job]:
        """Jobs that this kernel has started and nobody has waited for to the end."""
        from submarine_magics.jobs import KernelJobs

        return [entry.job for entry in KernelJobs.of(self.shell).open()]

    @property
    def launching_cell(self) -> str | None:
        """The cell that is being executed: a job's card lies below it."""
        executions = Executions.of(self.shell)
        current = executions.current if executions is not None else None
        return current.cell_id if current is not None else None

    @property
    def launching_place(self) -> str:
        """The id of that cell, or its number where the front end sends no id."""
        executions = Executions.of(self.shell)
        current = executions.current if executions is not None else None
        return (current.cell_id or current.label) if current is not None else ""

    def bind(self, job: Job) -> None:
        """Assign ``job`` to the name in ``job = %submarine wait digits``."""
        bind(job)

    def say(self, text: str) -> None:
        """A line in the cell's output."""
        print(printable(text, 10_000), flush=True)

    def warn(self, text: str) -> None:
        """A line among the cell's errors."""
        print(printable(text, 10_000), file=sys.stderr, flush=True)

    def renew(self, text: str) -> bool:
        """One line of the cell's output, renewed in place; a job's card takes its place."""
        if self._quiet:
            return True
        if not self.displays.rich:
            return False
        if text:
            self._line = self.displays.line(printable(text, 1000), self._line)
            self.displays.place = self._line
        return True

    def picture(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """A display of the cell that runs, and what renews it."""
        if self._quiet or not self.displays.rich:
            return None
        return self.displays.picture(bundle)

    def confirm(self, question: str) -> bool:
        """Ask, where there is somebody to ask; else no."""
        if not self.interactive:
            return False
        return input(f"{printable(question)} [y/N] ").strip().lower() in ("y", "yes")

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """A piece of a log; after ``MAX_LOG_BYTES`` the command ends with a sentence."""
        room = MAX_LOG_BYTES - self._written
        self._written += len(data)
        target = sys.stderr if stream == "stderr" else sys.stdout
        target.write(self._filters[stream].feed(data[:room]))
        target.flush()
        if self._written > MAX_LOG_BYTES:
            raise OutputLimitReached(
                f"\nA notebook output holds the first {MAX_LOG_BYTES >> 20} MiB of a log; "
                "`submarine logs` in a terminal, or Job.log, reads all of it."
            )

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show the job's card and keep it up to date until the job has ended."""
        self.watched = True
        if self._quiet:
            return job.wait(on_interrupt=on_interrupt)
        if self.displays.rich:
            self.displays.show(job)
            record = job.wait(on_interrupt=on_interrupt)
            self.displays.finish(job)
            return record
        from submarine_jobs.frontends import CommandLine

        self.displays.note_shown(job)
        terminal = CommandLine(json_asked=False)
        try:
            return terminal.watch(job, on_interrupt=on_interrupt, log=log)
        finally:
            terminal.finish()
