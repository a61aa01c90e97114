"""What a job runs: its cells, and the program that they make, both from the job's own bundle.

The bundle is somebody's archive: sizes are bounded before anything is unpacked.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

from submarine_jobs.access import MAX_BUNDLE
from submarine_jobs.client import Job
from submarine_jobs.model import JobSpec
from submarine_jobs.text import one_line, printable
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.sourcemap import MAP_PATH, SourceMap
from submarine_server.base import ApiError, BaseHandler, checked_job_id, guarded
from submarine_server.views import Json

#: Bytes of the list of files in a bundle, of its source map, of all its texts together, and files
#: and cells that are told.
MAX_LISTED = 4 << 20
MAX_MAP = 4 << 20
MAX_TEXT = 4 << 20
MAX_FILES, MAX_CELLS = 500, 2000
_DAMAGED = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    zlib.error,
)


class CellsHandler(BaseHandler):
    """``GET jobs/ID/cells``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """The cells that the program was made of, in its order."""
        job_id = checked_job_id(job)
        self.answer({"cells": await self.core.call(lambda: cells_of(self.core.find(job_id)))})


class ScriptHandler(BaseHandler):
    """``GET jobs/ID/script``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """The merged program as text."""
        job_id = checked_job_id(job)
        text = await self.core.call(lambda: script_of(self.core.find(job_id)))
        self.write(text)
        await self.finish(set_content_type="text/plain; charset=utf-8")


def cells_of(job: Job) -> list[Json]:
    """Label, id, file and source of each cell."""
    with _bundle(job) as bundle:
        files = _texts(bundle)
        try:
            with bundle.open(MAP_PATH) as packed:
                data = packed.read(MAX_MAP + 1)
            if len(data) > MAX_MAP:
                return []
            segments = SourceMap.from_bytes(data).files
        except (KeyError, ValueError, RecursionError, *_DAMAGED):
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
    """All files of the program, the one that is run last."""
    with _bundle(job) as bundle:
        files = _texts(bundle)
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


def _bundle(job: Job) -> zipfile.ZipFile:
    try:
        data = job.directory.storage.read(job.directory.file(layout.BUNDLE), 0, MAX_BUNDLE)
        if _listed_bytes(data) > MAX_LISTED:
            raise zipfile.BadZipFile("it lists too many files")
        return zipfile.ZipFile(io.BytesIO(data))
    except FileNotFoundError:
        raise ApiError(404, f"{job.id} has no program of its own: it runs a command.") from None
    except (zipfile.BadZipFile, NotImplementedError):
        raise ApiError(409, f"The bundle of {job.id} is damaged or too large to be read.") from None


def _listed_bytes(data: bytes) -> int:
    """Size of the list of files at the end of an archive, of which ``zipfile`` reads all."""
    tail = data[-(1 << 16) - 64 :]
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or b"PK\x06\x07" in tail:  # no archive, or one of 64 bits, which ours never is
        return MAX_LISTED + 1
    return int.from_bytes(tail[end + 12 : end + 16], "little")


def _texts(bundle: zipfile.ZipFile) -> dict[str, str]:
    """The program's files as text, as far as the bounds allow."""
    found: dict[str, str] = {}
    room = MAX_TEXT
    for info in bundle.infolist()[:MAX_FILES]:
        if info.is_dir() or info.filename.startswith(".submarine/") or info.file_size > room:
            continue
        try:
            with bundle.open(info) as file:
                data = file.read(room)
        except _DAMAGED:
            continue
        room -= len(data)
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        found[info.filename] = printable(text, MAX_TEXT)
    return found


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/([^/]+)/cells", CellsHandler),
    (r"jobs/([^/]+)/script", ScriptHandler),
]
