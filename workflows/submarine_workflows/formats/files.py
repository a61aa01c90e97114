"""A workflow from where it lies: a ``.flow`` file, a folder of job files, or a zip of either."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from submarine_jobs.errors import UsageError
from submarine_jobs.text import beside
from submarine_workflows.formats.flow1 import MAX_BYTES, read_jobs
from submarine_workflows.formats.flow2 import read_workflow
from submarine_workflows.model import Workflow

FLOWS = (".flow", ".yaml", ".yml")
_JOBS = (".job", ".properties")
MAX_FILES = 5000


def open_workflow(path: Path) -> Workflow:
    """The workflow in ``path``; its name is the file's, as Azkaban has it.

    Parameters
    ----------
    path
        A Flow 2.0 file (``.flow``, ``.yaml``), a folder of Flow 1.0 job files, or an Azkaban
        project's zip with one flow in it.

    Raises
    ------
    UsageError
        If there is nothing that could be a workflow.
    WorkflowError
        If what is there is not one.
    """
    if path.is_dir():
        texts = dict(_of_folder(path))
    elif path.suffix == ".zip":
        texts = dict(_of_zip(path))
    elif path.suffix in FLOWS:
        return read_workflow(_text(path), path.stem, path.name)
    elif not path.exists() and not path.suffix:
        raise UsageError(
            f"There is no workflow {path} here, and no file of that name.",
            "A cell `%%submarine workflow NAME` keeps one when a person runs it; or name a .flow "
            "file.",
        )
    else:
        raise UsageError(
            f"{path} is no workflow.",
            "Give a .flow or .yaml file, a folder with .job files, or an Azkaban project's zip.",
        )
    flows = sorted(name for name in texts if name.endswith(".flow"))
    if len(flows) > 1:
        raise UsageError(
            f"{path} has {len(flows)} flows: {', '.join(flows[:10])}.", "Name one of these files."
        )
    if flows:
        return read_workflow(texts[flows[0]], PurePosixPath(flows[0]).stem, flows[0])
    # A folder may be named as `.`, and have dots in its name.
    return read_jobs(texts, path.resolve().name if path.is_dir() else path.stem)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is no UTF-8 text"
        hint = beside(path) if isinstance(exc, FileNotFoundError) else ""
        raise UsageError(f"{path} cannot be read: {why}.", hint) from None


def _of_folder(path: Path) -> Iterator[tuple[str, str]]:
    for number, file in enumerate(sorted(path.rglob("*"))):
        if number >= MAX_FILES:
            raise UsageError(f"{path} has more than {MAX_FILES} files: name the workflow's own.")
        if file.suffix in (*_JOBS, ".flow") and file.is_file():
            yield file.relative_to(path).as_posix(), _text(file)


def _of_zip(path: Path) -> Iterator[tuple[str, str]]:
    """Texts of a zip, each read up to its limit: a small zip may unpack to no end."""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[:MAX_FILES]:
                if PurePosixPath(info.filename).suffix not in (*_JOBS, ".flow"):
                    continue
                with archive.open(info) as file:
                    data = file.read(4 * MAX_BYTES + 1)
                yield info.filename, data.decode("utf-8-sig")
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, RuntimeError) as exc:
        why = (exc.strerror if isinstance(exc, OSError) else None) or exc
        hint = beside(path) if isinstance(exc, FileNotFoundError) else ""
        raise UsageError(f"{path} cannot be read: {why}.", hint) from None
