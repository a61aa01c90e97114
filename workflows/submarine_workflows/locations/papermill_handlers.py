"""Where papermill itself reads and writes, and what it writes last: in one step, as we do.

Papermill writes a notebook once more after its engine, by a handler that it finds by how the path
begins. Ours stands there for this one write: papermill is the same before and after a run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from papermill.iorw import papermill_io

from submarine_workflows.locations.local_file import LocalPlace
from submarine_workflows.locations.location import Place
from submarine_workflows.locations.papermill_io import SubmarineIO
from submarine_workflows.locations.urls import is_url, place_of


def papermill_place(path: Any) -> Place | None:
    """Where papermill wants the notebook while it runs; its own writers for what only it knows."""
    if not path or path == "-":
        return None
    text = str(path)
    if not is_url(text):
        # Papermill may have changed the directory since; its handler remembers the one before.
        before = getattr(papermill_io.get_handler("local"), "_cwd", None)
        return LocalPlace(Path(before or "", text).absolute())
    handler = papermill_io.get_handler(text)
    return place_of(text) if handler is SubmarineIO else PapermillPlace(text, handler)


@contextlib.contextmanager
def whole_at_last(path: Any) -> Iterator[None]:
    """Around an engine's work: papermill's write after it replaces the file at ``path`` at once.

    Where the work raises, papermill writes nothing any more and its handlers are as before.
    """
    own: _WholeFile | None = None
    if isinstance(papermill_place(path), LocalPlace) and str(path).endswith(".ipynb"):
        own = _WholeFile(papermill_io.get_handler(str(path)))
        papermill_io.register(str(path), own)
    try:
        yield
    except BaseException:
        if own is not None:
            own.withdraw()
        raise


class _WholeFile:
    """Papermill's handler for files of this machine, but for how it writes, and only once."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)

    def write(self, text: str, path: str) -> None:
        """Replace the file at ``path``, in the directory that papermill began in."""
        self.withdraw()
        before = getattr(self._handler, "_cwd", None)
        LocalPlace(Path(before or "", path).absolute()).write(text.encode("utf-8", "replace"))

    def withdraw(self) -> None:
        """Be one of papermill's handlers no longer."""
        with contextlib.suppress(AttributeError):
            handlers = papermill_io._handlers
            handlers[:] = [entry for entry in handlers if entry[1] is not self]


class PapermillPlace(Place):
    """A place that one of papermill's own handlers writes to: s3, gs, adl, abs."""

    def __init__(self, url: str, handler: Any) -> None:
        self.url = url
        self._handler = handler

    def read(self) -> bytes:
        """See ``Place.read``."""
        found = self._handler.read(self.url)
        return found if isinstance(found, bytes) else str(found).encode("utf-8")

    def write(self, data: bytes) -> None:
        """See ``Place.write``."""
        self._handler.write(data.decode("utf-8"), self.url)
