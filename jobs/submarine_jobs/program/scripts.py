"""Build bundles from files: a Python script with its local modules, or a notebook.

Only the named file and the modules that it imports from its directory are read.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.program.cell import Cell, Notice
from submarine_jobs.program.cell_magic import parse_cell, parse_options
from submarine_jobs.program.file_names import PROGRAM
from submarine_jobs.program.job_bundle import MAX_BYTES, Bundle, build_bundle, check_size
from submarine_jobs.program.notebook_document import DocumentCell, NotebookDocument, read_notebook
from submarine_jobs.text import one_line
from submarine_runtime.protocol import SourceMap
from submarine_runtime.translation import _, ngettext

_SCRIPT_NAME = re.compile(r"^[A-Za-z0-9_][\w.-]*\.py\Z", re.ASCII)


def bundle_from_file(path: str | os.PathLike[str]) -> Bundle:
    """Return the bundle of a ``.py`` or ``.ipynb`` file; raise UsageError for other files."""
    suffix = Path(path).suffix.lower()
    if suffix == ".py":
        return bundle_from_script(path)
    if suffix == ".ipynb":
        return bundle_from_notebook(path)
    raise UsageError(
        _("{path} is neither a Python file nor a notebook.").format(path=os.fspath(path)),
        _("Name a file that ends in .py or .ipynb."),
    )


def bundle_from_script(path: str | os.PathLike[str]) -> Bundle:
    """Return the bundle of a script and the modules of its directory that it imports.

    Raises
    ------
    UsageError
        If it cannot be read, its name is invalid, or a module of its directory hides one of the
        standard library.
    """
    script = Path(path)
    if not _SCRIPT_NAME.match(script.name):
        raise UsageError(
            _('The program file is called "{script}".').format(script=script.name),
            _("Rename it: ASCII letters, digits, _, - and . only, ending in .py."),
        )
    found = _Siblings(script.parent)
    found.add(script.name)
    notices = (
        (_imported_notice(script.name, list(found.files)[1:]),) if len(found.files) > 1 else ()
    )
    check_size(found.files)
    return Bundle(script.name, found.files, SourceMap({}), None, notices)


def _imported_notice(script: str, names: list[str]) -> Notice:
    shown = ", ".join(names[:20]) + (
        _(" and {count} more").format(count=len(names) - 20) if len(names) > 20 else ""
    )
    words = ngettext(
        "{names} is taken along, because {script} imports it.",
        "{names} are taken along, because {script} imports them.",
        len(names),
    )
    return Notice(words.format(names=shown, script=script), "", 0)


def bundle_from_notebook(path: str | os.PathLike[str]) -> Bundle:
    """Return the bundle of a notebook: its ``%%submarine`` cells, or else all code cells.

    Raises
    ------
    UsageError
        If it cannot be read, is not a Python notebook, or has no code cell.
    """
    document = read_notebook(path)
    if document.language not in ("python", "python3", "ipython"):
        raise UsageError(
            _("{document} is a notebook in {language}.").format(
                document=document.path, language=document.language[:40]
            ),
            _("Only Python notebooks can run as a job."),
        )
    cells = marked_cells(document)
    if all(cell.write_mode for cell in cells):
        # The text of a marked cell that is not part of a program is for another verb.
        plain = [cell for cell in document.cells if cell.source and parse_cell(cell.source) is None]
        cells = [*(_cell(cell, cell.source, PROGRAM, 1) for cell in plain), *cells]
    if not cells:
        raise UsageError(
            _("{document} has no code cell.").format(document=document.path),
            _("Write one, and save the notebook."),
        )
    bundle = build_bundle(cells, notebook=document.snapshot)
    return replace(bundle, notices=(*bundle.notices, *_raised(document, cells)))


def _raised(document: NotebookDocument, cells: list[Cell]) -> list[Notice]:
    """Return notices on cells that raised an exception when the saved document was executed."""
    raised = {cell.label: cell.raised for cell in document.cells if cell.raised}
    return [
        Notice(
            _(
                "Cell {label} raised {raised} when it was executed last, and is part of the "
                "program."
            ).format(label=cell.label, raised=one_line(raised[cell.label], 100)),
            cell.label,
            cell.first_line,
            "cell-raised",
            _("Correct the cell, run it and save the notebook."),
        )
        for cell in cells
        if cell.label in raised
    ]


def marked_cells(document: NotebookDocument) -> list[Cell]:
    """Return the marked cells of a saved document in order: by ``%%submarine`` or by tag.

    Raises
    ------
    UsageError
        If the ``%%submarine`` line or the tag of a cell is invalid.
    """
    cells: list[Cell] = []
    for cell in document.cells:
        marked = parse_cell(cell.source, cell.tags)
        if marked is None:
            continue
        try:
            options = parse_options(marked.line)
        except UsageError as error:
            raise UsageError(
                _("Cell {label}: {error}").format(label=cell.label, error=error.message), error.fix
            ) from None
        if not options.in_program:
            continue
        found = _cell(cell, marked.body, options.filename, marked.first_line)
        if marked.write_mode == "w":
            # It replaces the text that earlier cells have written to the same file.
            cells = [old for old in cells if not old.write_mode or old.filename != found.filename]
        cells.append(replace(found, write_mode=marked.write_mode))
    return cells


def _cell(cell: DocumentCell, body: str, filename: str, first_line: int) -> Cell:
    return Cell(cell.cell_id, body, filename, cell.label, cell.execution_count, first_line)


@dataclass
class _Siblings:
    """Collects files of one directory by following imports from file to file."""

    directory: Path
    files: dict[str, bytes] = field(default_factory=dict)
    size: int = 0

    def add(self, script: str) -> None:
        """Add ``script`` and the modules of this directory that it imports."""
        pending = [script]
        while pending:
            name = pending.pop()
            if name not in self.files:
                self.files[name] = content = self._read(name)
                pending.extend(self._imported(name, content))

    def _read(self, name: str) -> bytes:
        path = self.directory / name
        try:
            self.size += path.stat().st_size
            if self.size > MAX_BYTES:
                raise UsageError(
                    _("{path} and what it imports is larger than {max_bytes} MiB.").format(
                        path=path, max_bytes=MAX_BYTES >> 20
                    ),
                    _("A job's program is code; send data with --localization or --input_path."),
                )
            return path.read_bytes()
        except OSError as error:
            raise UsageError(
                _("{path} cannot be read: {error}.").format(
                    path=path, error=error.strerror or error
                ),
                _("Check its name and rights."),
            ) from None

    def _imported(self, name: str, content: bytes) -> list[str]:
        """Return the files of this directory that the file ``name`` imports, with packages."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(content)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return []
        found: list[str] = []
        for node in ast.walk(tree):
            for module in _modules(node, name.split("/")[:-1]):
                found.extend(self._files_of(module, name))
        return found

    def _files_of(self, module: str, importer: str) -> list[str]:
        parts = module.split(".")
        found: list[str] = []
        for depth in range(1, len(parts) + 1):
            stem = "/".join(parts[:depth])
            here = [f for f in (f"{stem}/__init__.py", f"{stem}.py") if self._is_file(f)]
            if not here and not (self.directory / stem).is_dir():
                break
            found.extend(here[:1])
        if found and parts[0] in sys.stdlib_module_names:
            if found[0] == importer:
                return []
            raise UsageError(
                _(
                    '{importer} imports "{module}", and {found} beside it hides that module of '
                    "the standard library."
                ).format(importer=importer, module=parts[0], found=found[0]),
                _("Rename {found}.").format(found=found[0]),
            )
        return found

    def _is_file(self, name: str) -> bool:
        return (self.directory / name).is_file()


def _modules(node: ast.AST, package: list[str]) -> list[str]:
    """Return the dotted names that an import may load, relative to the program's directory."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module.split(".") if node.module else []
    if node.level:
        if node.level - 1 > len(package):
            return []
        base = package[: len(package) - (node.level - 1)] + base
    if not base:
        return [alias.name for alias in node.names]
    return [".".join(base), *(".".join([*base, alias.name]) for alias in node.names)]
