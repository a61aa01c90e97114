"""Open a workflow from a ``.flow`` file, a folder of job files, or a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from submarine_jobs.errors import UsageError
from submarine_jobs.text import sibling_hint
from submarine_runtime.translation import _
from submarine_workflows.formats.flow1 import MAX_BYTES, read_jobs
from submarine_workflows.formats.flow2 import read_workflow
from submarine_workflows.model import Workflow

FLOWS = (".flow", ".yaml", ".yml")
_JOBS = (".job", ".properties")
MAX_FILES = 5000


def open_workflow(path: Path) -> Workflow:
    """Return the workflow in ``path``, named after the file as in Azkaban.

    Parameters
    ----------
    path
        A Flow 2.0 file (``.flow``, ``.yaml``), a folder of Flow 1.0 job files, or the zip file of
        an Azkaban project with one flow.

    Raises
    ------
    UsageError
        If ``path`` cannot contain a workflow.
    WorkflowError
        If the content is not a valid workflow.
    """
    if path.is_dir():
        texts = dict(_of_folder(path))
    elif path.suffix == ".zip":
        texts = dict(_of_zip(path))
    elif path.suffix in FLOWS:
        return read_workflow(_text(path), path.stem, path.name)
    elif not path.exists() and not path.suffix:
        raise UsageError(
            _("There is no workflow or file {path}.").format(path=path),
            _("Run a cell `%%submarine workflow NAME` to create one, or name a .flow file."),
        )
    else:
        raise UsageError(
            _("{path} is not a workflow.").format(path=path),
            _("Give a .flow or .yaml file, a folder with .job files, or an Azkaban project's zip."),
        )
    flows = sorted(name for name in texts if name.endswith(".flow"))
    if len(flows) > 1:
        raise UsageError(
            _("{path} has {count} flows: {flows}.").format(
                path=path, count=len(flows), flows=", ".join(flows[:10])
            ),
            _("Name one of these files."),
        )
    if flows:
        return read_workflow(texts[flows[0]], PurePosixPath(flows[0]).stem, flows[0])
    # The folder may be given as `.`, and its name may contain dots.
    return read_jobs(texts, path.resolve().name if path.is_dir() else path.stem)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else _("it is not UTF-8 text")
        hint = sibling_hint(path) if isinstance(exc, FileNotFoundError) else ""
        raise UsageError(
            _("{path} cannot be read: {why}.").format(path=path, why=why), hint
        ) from None


def _of_folder(path: Path) -> Iterator[tuple[str, str]]:
    for number, file in enumerate(sorted(path.rglob("*"))):
        if number >= MAX_FILES:
            raise UsageError(
                _("{path} has more than {max_files} files: name the workflow file.").format(
                    path=path, max_files=MAX_FILES
                )
            )
        if file.suffix in (*_JOBS, ".flow") and file.is_file():
            yield file.relative_to(path).as_posix(), _text(file)


def _of_zip(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of a zip file, each up to a limit: a small file may unpack to any size."""
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
        hint = sibling_hint(path) if isinstance(exc, FileNotFoundError) else ""
        raise UsageError(
            _("{path} cannot be read: {why}.").format(path=path, why=why), hint
        ) from None
