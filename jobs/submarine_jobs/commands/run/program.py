"""Find the program of ``run``: a script, a notebook document, or the collected cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.commands.grammar import printable
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.options import RunOptions, is_only_tensorboard, needs_program
from submarine_jobs.program import PROGRAM, bundle_from_file, uploaded_bundle
from submarine_jobs.text import sibling_hint
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.program import Bundle, CellCollection

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Program:
    """The program of a job.

    Parameters
    ----------
    name
        Name of the job if no name is given.
    bundle
        None: a command without shipped files.
    notebook
        Path of its notebook document.
    directory
        Directory of its file; modules in it may be missing from the bundle.
    from_cells
        Whether it consists of the front end's collected cells.
    packages
        Modules that the Python of the job must have, though no file imports them.
    """

    name: str
    bundle: Bundle | None
    notebook: str | None = None
    directory: Path | None = None
    from_cells: bool = False
    packages: tuple[str, ...] = ()


def find_program(options: RunOptions, frontend: Frontend) -> Program:
    """Return the program of ``run``.

    Raises
    ------
    UsageError
        If there is none, or if it cannot be read or shipped.
    """
    if frontend.files:
        return _from_upload(options, frontend.files)
    name = options.program
    if name is None and is_only_tensorboard(options, program=True):
        return Program("tensorboard", None)
    collected = frontend.collection
    files = {cell.filename for cell in collected.cells()} if collected is not None else set()
    if name is not None and (name not in files or _is_on_disk(name, collected)):
        return _from_file(name)
    if files:
        return _from_cells(options, frontend, files)
    if not needs_program(options):
        return Program("job", None)
    if is_only_tensorboard(options, program=False):
        return Program("tensorboard", None)
    if collected is not None:
        raise UsageError(
            _("No cell is collected, so there is no program to run."),
            _("Put %%submarine on the first line of a cell and run that cell, or name a file."),
        )
    named = _(" {name!r} is a name.").format(name=printable(options.name)) if options.name else ""
    raise UsageError(
        _("There is no program to run.{named}").format(named=named),
        _("Name a file: submarine run train.py (or a notebook, train.ipynb)."),
    )


def _is_on_disk(name: str, collected: CellCollection | None) -> bool:
    """Return whether ``%%writefile`` cells alone wrote the file, so that its imports are there."""
    cells = collected.cells() if collected is not None else []
    modes = [cell.write_mode for cell in cells if cell.filename == name]
    return all(modes) and Path(name).is_file()


def _from_upload(options: RunOptions, files: Mapping[str, bytes]) -> Program:
    has_command = not needs_program(options)
    bundle = uploaded_bundle(files, options.program, has_command=has_command)
    return Program(_job_name(Path(bundle.program).stem), bundle)


def _from_file(name: str) -> Program:
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(
            _("There is no file {name}.").format(name=printable(name)),
            sibling_hint(path) or _("Check the path."),
        )
    notebook = str(path.absolute()) if path.suffix.lower() == ".ipynb" else None
    return Program(_job_name(path.stem), bundle_from_file(path), notebook, path.parent)


def _from_cells(options: RunOptions, frontend: Frontend, files: set[str]) -> Program:
    program = options.program or PROGRAM
    if options.command is not None and program not in files:
        program = sorted(files)[0]
    notebook = frontend.notebook_name
    bundle = frontend.cells_bundle(program)
    stem = Path(notebook).stem if notebook else Path(program).stem
    directory = Path(notebook).parent if notebook else Path.cwd()
    return Program(_job_name(stem), bundle, notebook, directory, from_cells=True)


def _job_name(stem: str) -> str:
    return _UNFIT.sub("-", stem).strip("-.")[:64] or "job"
