"""Save the workflow of a cell in a ``.flow`` file beside the notebook.

The kernel remembers the files that its cells have written.
"""

from __future__ import annotations

import re
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

SUFFIX = ".flow"
_NAME = re.compile(r"[A-Za-z0-9_](?:[\w.-]{0,98}[A-Za-z0-9_])?", re.ASCII)
_HEAD = "# Written by %%submarine workflow"
_HEADING = re.compile(re.escape(_HEAD) + r"(?: in (?P<notebook>.+))?; change it in that cell\.")
#: By notebook and name: one process may serve several notebooks, as Zeppelin does.
_files: dict[tuple[str, str], Path] = {}


def check_name(name: str) -> str:
    """Return a valid workflow name, which is also a file name.

    Raises
    ------
    UsageError
        If it is not a plain file name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            _("{name!r} is not a valid workflow name.").format(name=name[:60]),
            _("Use letters, digits, `.`, `_` and `-`, such as nightly."),
        )
    return name


def notebook_of(frontend: Frontend) -> Path | None:
    """Return the file of the notebook, or None."""
    name = frontend.notebook_name
    path = Path(name) if name else None
    return path.absolute() if path is not None and path.is_file() else None


def folder_of(frontend: Frontend) -> Path:
    """Return the folder of the notebook, else the kernel's working directory."""
    notebook = notebook_of(frontend)
    return notebook.parent if notebook is not None else Path.cwd()


def keep(name: str, text: str, frontend: Frontend) -> Path:
    """Write the file of a workflow atomically.

    Raises
    ------
    UsageError
        If another notebook or editor created the file, or it cannot be written.
    """
    notebook = notebook_of(frontend)
    path = folder_of(frontend) / (name + SUFFIX)
    _check_overwritable(path, notebook)
    # A line break in the notebook's name would start another line of YAML.
    written_in = f" in {notebook.name}" if notebook and notebook.name.isprintable() else ""
    heading = f"{_HEAD}{written_in}; change it in that cell."
    data = f"{heading}\n{text}".encode("utf-8", "replace")
    try:
        if not path.is_file() or path.read_bytes() != data:
            replace_file(path, data)
    except OSError as error:
        raise UsageError(
            _("{path} cannot be written: {strerror}.").format(
                path=path, strerror=error.strerror or error
            )
        ) from None
    _files[frontend.notebook_name or "", name] = path
    return path


def _check_overwritable(path: Path, notebook: Path | None) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline(1000)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            _("{path} cannot be read: {strerror}.").format(
                path=path, strerror=error.strerror or error
            )
        ) from None
    match = _HEADING.fullmatch(first.strip())
    if match is None:
        raise UsageError(
            _("{path} already exists and was not written by a cell.").format(path=path.name),
            _("Give the workflow another name, or move that file."),
        )
    other = match["notebook"]
    if other and notebook and other != notebook.name and (path.parent / other).is_file():
        raise UsageError(
            _("{path} already exists and was written in {other}.").format(
                path=path.name, other=other
            ),
            _("Give the workflow another name, or change it there."),
        )


def saved_names(frontend: Frontend) -> list[str]:
    """Return the workflows that cells of this notebook have saved in this process."""
    own = frontend.notebook_name or ""
    return [name for notebook, name in _files if notebook == own]


def saved_file(name: str, frontend: Frontend) -> Path | None:
    """Return the file that a cell of this notebook has written for the workflow ``name``."""
    return _files.get((frontend.notebook_name or "", name))
