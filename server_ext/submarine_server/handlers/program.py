"""The program of a job, from its bundle: the cells and the merged script.

The bundle is untrusted: sizes are checked before anything is unpacked.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

from submarine_jobs.access import MAX_BUNDLE
from submarine_jobs.client import Job
from submarine_jobs.model import JobSpec
from submarine_jobs.program import central_directory_size
from submarine_jobs.text import one_line, printable
from submarine_runtime.protocol import MAP_PATH, SourceMap, layout
from submarine_runtime.translation import _
from submarine_server.base import PLAIN_TEXT, Answer, ApiError, BaseHandler, guarded, require_job_id
from submarine_server.views import CellJson, CellsJson

#: Limits in bytes: central directory of a bundle, source map, all texts; number of files and cells.
MAX_DIRECTORY = 4 << 20
MAX_MAP = 4 << 20
MAX_TEXT = 4 << 20
MAX_FILES, MAX_CELLS = 500, 2000
_READ_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    zlib.error,
)


class CellsHandler(BaseHandler):
    """``GET jobs/ID/cells``."""

    @guarded("read", Answer((CellsJson,)))
    async def get(self, job: str) -> None:
        """Return the cells of the program in order."""
        job_id = require_job_id(job)
        self.finish_json(
            {"cells": await self.service.call(lambda: cells_of(self.service.find(job_id)))}
        )


class ScriptHandler(BaseHandler):
    """``GET jobs/ID/script``."""

    @guarded("read", Answer(content_type=PLAIN_TEXT))
    async def get(self, job: str) -> None:
        """Return the merged program as text."""
        job_id = require_job_id(job)
        text = await self.service.call(lambda: script_of(self.service.find(job_id)))
        self.write(text)
        await self.finish(set_content_type=PLAIN_TEXT)


def cells_of(job: Job) -> list[CellJson]:
    """Return label, id, file and source of each cell."""
    with _open_bundle(job) as bundle:
        files = _read_texts(bundle)
        try:
            with bundle.open(MAP_PATH) as packed:
                data = packed.read(MAX_MAP + 1)
            if len(data) > MAX_MAP:
                return []
            segments = SourceMap.from_bytes(data).files
        except (KeyError, ValueError, RecursionError, *_READ_ERRORS):
            return []
    found: dict[tuple[str, str, str | None], list[str]] = {}
    for file, parts in segments.items():
        lines = files.get(file, "").split("\n")
        for part in parts[:MAX_CELLS]:
            key = (file, part.cell, part.cell_id)
            found.setdefault(key, []).extend(lines[part.start - 1 : part.end])
    return [
        {
            "label": one_line(label, 80),
            "cell_id": one_line(cell_id, 200) if cell_id else None,
            "file": one_line(file, 400),
            "source": "\n".join(lines),
        }
        for (file, label, cell_id), lines in list(found.items())[:MAX_CELLS]
    ]


def script_of(job: Job) -> str:
    """Return all files of the program, the main file last."""
    with _open_bundle(job) as bundle:
        files = _read_texts(bundle)
    try:
        spec: JobSpec | None = job.directory.spec()
    except (ValueError, KeyError, TypeError):
        spec = None
    program = spec.program if spec is not None else None
    names = sorted(
        (name for name in files if name.endswith(".py")), key=lambda n: (n == program, n)
    )
    if len(names) == 1:
        return files[names[0]]
    return "\n".join(f"# ---- {one_line(name, 400)} ----\n{files[name]}" for name in names)


def _open_bundle(job: Job) -> zipfile.ZipFile:
    try:
        data = job.directory.storage.read(job.directory.file(layout.BUNDLE), 0, MAX_BUNDLE)
        size = central_directory_size(data)
        if size is None or size > MAX_DIRECTORY:
            raise zipfile.BadZipFile(_("it lists too many files"))
        return zipfile.ZipFile(io.BytesIO(data))
    except FileNotFoundError:
        raise ApiError(
            404, _("{id} runs a command and has no program.").format(id=job.id)
        ) from None
    except (zipfile.BadZipFile, NotImplementedError):
        raise ApiError(
            409, _("The bundle of {id} is damaged or too large to be read.").format(id=job.id)
        ) from None


def _read_texts(bundle: zipfile.ZipFile) -> dict[str, str]:
    """Read the files of the program as text within the limits."""
    found: dict[str, str] = {}
    remaining = MAX_TEXT
    for info in bundle.infolist()[:MAX_FILES]:
        if info.is_dir() or info.filename.startswith(".submarine/") or info.file_size > remaining:
            continue
        try:
            with bundle.open(info) as file:
                data = file.read(remaining)
        except _READ_ERRORS:
            continue
        remaining -= len(data)
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        found[info.filename] = printable(text, MAX_TEXT)
    return found


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/([^/]+)/cells", CellsHandler),
    (r"jobs/([^/]+)/script", ScriptHandler),
]
