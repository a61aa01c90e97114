"""Locations that papermill's handlers write to, and an atomic last write.

Papermill writes the notebook again after its engine, with the handler for the path's prefix. For
this write a handler is registered here and removed afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from papermill.iorw import papermill_io

from submarine_workflows.locations.local_file import LocalLocation
from submarine_workflows.locations.location import Location
from submarine_workflows.locations.papermill_io import SubmarineIO
from submarine_workflows.locations.urls import find_location, is_url


def papermill_location(path: Any) -> Location | None:
    """Return papermill's output location; unknown URLs use papermill's own handlers."""
    if not path or path == "-":
        return None
    text = str(path)
    if not is_url(text):
        # Papermill's handler remembers the directory before a change.
        before = getattr(papermill_io.get_handler("local"), "_cwd", None)
        return LocalLocation(Path(before or "", text).absolute())
    handler = papermill_io.get_handler(text)
    if isinstance(handler, _AtomicWriter):
        return handler.location
    return find_location(text) if handler is SubmarineIO else PapermillLocation(text, handler)


@contextlib.contextmanager
def atomic_last_write(path: Any) -> Iterator[None]:
    """Make papermill's write after the engine atomic.

    If the engine raises, papermill writes nothing, and its handlers are restored.
    """
    writer: _AtomicWriter | None = None
    location = papermill_location(path)
    if isinstance(location, LocalLocation) and str(path).endswith(".ipynb"):
        writer = _AtomicWriter(papermill_io.get_handler(str(path)), location)
        papermill_io.register(str(path), writer)
    try:
        yield
    except BaseException:
        if writer is not None:
            writer.remove()
        raise


class _AtomicWriter:
    """Papermill's handler for local files, with one atomic write."""

    def __init__(self, handler: Any, location: LocalLocation) -> None:
        self._handler = handler
        self.location = location

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)

    def write(self, text: str, path: str) -> None:
        """Replace the file of ``location``, which papermill names by ``path``."""
        self.remove()
        self.location.write(text.encode("utf-8", "replace"))

    def remove(self) -> None:
        """Remove this handler from papermill."""
        with contextlib.suppress(AttributeError):
            handlers = papermill_io._handlers
            handlers[:] = [entry for entry in handlers if entry[1] is not self]


class PapermillLocation(Location):
    """A location of one of papermill's own handlers: s3, gs, adl, abs."""

    def __init__(self, url: str, handler: Any) -> None:
        self.url = url
        self._handler = handler

    def read(self) -> bytes:
        """See ``Location.read``."""
        found = self._handler.read(self.url)
        return found if isinstance(found, bytes) else str(found).encode("utf-8")

    def write(self, data: bytes) -> None:
        """See ``Location.write``."""
        self._handler.write(data.decode("utf-8"), self.url)
