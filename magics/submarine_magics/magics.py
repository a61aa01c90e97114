"""The implementation of ``%submarine`` and ``%%submarine``, imported when they are first used."""

from __future__ import annotations

import ast
import linecache
import shlex
import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

from IPython.core import page
from IPython.core.interactiveshell import InteractiveShell

from submarine_jobs.client import Job
from submarine_jobs.commands import CellBody, execute
from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import SubmarineError, UsageError, job_of
from submarine_jobs.frontends import MAX_TEXT
from submarine_jobs.program import PROGRAM, Cell, parse_cell, parse_options
from submarine_jobs.text import printable
from submarine_magics.cells import (
    CollectedModules,
    NotebookCells,
    RenamedDocument,
    document_path,
    reported_paths,
)
from submarine_magics.commands import help_on, with_defaults, with_headless_options
from submarine_magics.execution import (
    COLLECT,
    COLLECT_ONLY,
    HELP_REQUEST,
    ONLY_CALL,
    Execution,
    Executions,
    called_from_cell,
)
from submarine_magics.frontend import (
    NotebookFrontend,
    OutputLimitReached,
    WaitInterrupted,
    show_outcome,
    without_traceback,
)
from submarine_magics.jobs import KernelJobs
from submarine_runtime.translation import _


class SubmarineMagics:
    """``%submarine`` and ``%%submarine`` of one shell."""

    _all: weakref.WeakKeyDictionary[InteractiveShell, SubmarineMagics] = weakref.WeakKeyDictionary()

    def __init__(self, shell: InteractiveShell) -> None:
        self._all[shell] = self
        self._renamed = RenamedDocument()
        self.cells = NotebookCells(self.notebook_path)
        self.frontend = NotebookFrontend(shell, self.cells)
        if shell.display_formatter is not None:
            formatter = shell.display_formatter.ipython_display_formatter
            formatter.for_type(Job, self.frontend.displays.display_job)
        self.modules = CollectedModules(lambda: self.cells.collection)
        sys.meta_path.insert(0, self.modules)
        Executions.attach(shell).listeners.append(self.cells.on_execution)
        KernelJobs.of(shell)

    @classmethod
    def of(cls, shell: InteractiveShell) -> SubmarineMagics:
        """Return the magics of ``shell``; the first call creates them."""
        if shell not in cls._all:
            cls(shell)
        return cls._all[shell]

    def submarine(self, line: str, cell: str | None = None) -> Any:
        """Execute a magic; ``cell`` is None for ``%submarine``.

        Raises
        ------
        SubmarineError
            If the command fails; IPython shows it as one sentence.
        WaitInterrupted
            When interrupted.
        """
        try:
            with called_from_cell():
                return self._submarine(line, cell)
        except SubmarineError as error:
            raise without_traceback(error) from None
        except WaitInterrupted:
            raise
        except KeyboardInterrupt as interrupt:
            job = job_of(interrupt)
            if job is not None:
                raise WaitInterrupted(
                    _("the command did not end; `%submarine show {id}` shows its job.").format(
                        id=job.id
                    ),
                    job,
                ) from None
            raise WaitInterrupted(
                _("the command did not end; `%submarine list` shows whether it submitted a job.")
            ) from None

    def _submarine(self, line: str, cell: str | None) -> Any:
        if cell is not None:
            return self._cell(line)
        if line in (COLLECT, COLLECT_ONLY):
            self._collect(only=line == COLLECT_ONLY)
            return None
        if line.startswith(HELP_REQUEST):
            return self._help(line.removeprefix(HELP_REQUEST))
        return self._command(line, None)

    def collect_tagged(self, execution: Execution) -> None:
        """Collect a cell with a tag of Submarine or with ``%%writefile``. It also runs as usual."""
        marked = parse_cell(execution.source)
        if marked is not None and marked.write_mode:
            self._collect_written(execution)
            return
        if marked is not None or not compiles(execution.code):
            # The line %%submarine takes precedence. Code with a syntax error is not collected.
            return
        if execution.code.strip() == ONLY_CALL:
            return  # The call collects the cell.
        names: Any = self.frontend.shell.compile
        code_name = names.get_code_name(execution.source, execution.code, execution.number)
        try:
            collected = self.cells.collect(execution, code_name, only=False)
        except SubmarineError as error:
            self.frontend.warn(
                _("The present text of this cell is not in the program: {error}").format(
                    error=error
                )
            )
            return
        self.modules.forget(collected.cell)
        for notice in collected.notices:
            self.frontend.say(notice.message)

    def _collect_written(self, execution: Execution) -> None:
        try:
            self.cells.collect(execution, None, only=True)
        except SubmarineError as error:
            self.frontend.warn(
                _("This cell is not part of the program: {error}").format(error=error)
            )

    def note_exception(self, source: str, error: BaseException) -> None:
        """Record the exception of the newest cell, for the checks before a submission."""
        executions = Executions.of(self.frontend.shell)
        # The hook runs outside the context of the cell, where `current` is None.
        execution = executions.latest if executions is not None else None
        if execution is None or execution.source != source:
            return
        if "raises-exception" not in execution.tags:
            self.cells.note_exception(execution, error)

    def notebook_path(self) -> Path | None:
        """Return the path of the notebook document, if it is known."""
        namespace = self.frontend.shell.user_ns
        found = document_path(namespace)
        if found is not None:
            return found
        ids = {cell.cell_id for cell in self.cells.collection.cells() if cell.cell_id}
        return self._renamed.find(next(iter(reported_paths(namespace)), None), ids)

    def _execution(self) -> Execution:
        executions = Executions.of(self.frontend.shell)
        current = executions.current if executions is not None else None
        if current is None:
            raise UsageError(
                _("This cell started before Submarine was loaded."),
                _("Run %load_ext submarine_magics in a cell of its own, then this cell again."),
            )
        return current

    def _cell(self, line: str) -> Any:
        execution = self._execution()
        marked = parse_cell(execution.source)
        options = parse_options(line)
        if options.verb is None:
            self._collect(only=True)
            return None
        if marked is None:
            raise UsageError(
                _("%%submarine is not on the first line of its cell."), _("Move it up.")
            )
        if not options.in_program:
            body = CellBody(marked.body, marked.first_line, execution.label)
            return self._command(line, None, body)
        program = parse_run(_words(line)[1:]).program or PROGRAM
        paragraph = self.cells.cell_of(execution, marked, program)
        code_name = _code_name()
        self.cells.remember_run(execution, code_name)
        if code_name is not None:
            show_source_as_typed(code_name, execution.source)
        return self._command(line, paragraph)

    def _collect(self, *, only: bool) -> None:
        execution = self._execution()
        code_name = _code_name()
        collected = self.cells.collect(execution, code_name, only=only)
        if code_name is not None:
            show_source_as_typed(code_name, execution.source)
        self.modules.forget(collected.cell)
        for notice in collected.notices:
            self.frontend.say(notice.message)
        if only:
            cell = collected.cell
            self.frontend.say(
                _("Cell {label} is now part of {filename}; it did not run here.").format(
                    label=cell.label, filename=cell.filename
                )
            )

    def _help(self, question: str) -> None:
        """Show help on ``%submarine run --gpu?`` in the pager, like IPython's own help."""
        marks = "%%" if question.startswith("%%") else "%"
        words = question.strip().removeprefix(marks + "submarine").split()
        text = help_on(marks, words)
        if text is None:
            raise UsageError(
                _("There is no help on {question}.").format(question=question.strip()[:80]),
                _("Try %submarine?"),
            )
        page.page(text)

    def _command(self, line: str, paragraph: Cell | None, body: CellBody | None = None) -> Any:
        shell = self.frontend.shell
        words = with_headless_options(with_defaults(_words(line), shell), shell)
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        self.cells.follow_document()
        with self.frontend.command_context(paragraph, quiet="--json" in words):
            try:
                outcome = execute(words, self.frontend, body)
            except OutputLimitReached as reached:
                self.frontend.say(str(reached))
                return None
        if words[:1] == ["script"] and not (self.frontend.displays.rich or outcome.as_json):
            print(self._highlight(printable(outcome.text, MAX_TEXT)))
            return None
        return show_outcome(outcome, self.frontend, self.cells)

    def _highlight(self, program: str) -> str:
        """Return a program with the colours of IPython's theme."""
        highlight: Any = getattr(self.frontend.shell, "pycolorize", str)
        return str(highlight(program))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError(
            _("The quotes in %submarine {line} do not close.").format(line=line[:80])
        ) from None


def compiles(code: str) -> bool:
    """Whether ``code`` is valid Python. IPython reports the error if it is not."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _code_name() -> str | None:
    """Return the file name of the cell that called the magic: the nearest frame of a cell."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "get_ipython" in frame.f_code.co_names and frame.f_code.co_name == "<module>":
            return frame.f_code.co_filename
        frame = frame.f_back
    return None


def show_source_as_typed(code_name: str, source: str) -> None:
    """Let tracebacks quote the cell as it was typed, with the magic line as a comment.

    The compiled code differs in that line only, so the line numbers are the same.
    """
    lines = source.replace("\r\n", "\n").lstrip("\n").split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    typed = "\n".join(["# " + lines[0].strip(), *lines[1:]]) + "\n" if lines else "\n"
    linecache.cache[code_name] = (len(typed), None, typed.splitlines(keepends=True), code_name)
