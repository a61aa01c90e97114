"""Keeps the output notebook on disk while it grows: whole each time, not too often, never waiting.

The notebook is made into text where it changes, in the event loop's thread; it is written in a
thread of its own, since a file system may take its time. Does not know what is executed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import nbjson
from papermill.engines import NotebookExecutionManager
from papermill.log import logger

from submarine_jobs.errors import SubmarineError
from submarine_jobs.profile import default_state_dir
from submarine_workflows.headless.local_place import write_by_rename
from submarine_workflows.headless.place import Place

#: Seconds from a change to its being saved.
SOON = 1.0
#: A save may take this share of the time.
_SHARE = 0.05
_TRIES = 3


class Output:
    """The place of the output notebook, and what keeps it up to date.

    Parameters
    ----------
    place
        None: nothing is saved while the notebook runs.
    """

    def __init__(self, notebook: Any, place: Place | None) -> None:
        self.notebook = notebook
        self.place = place
        self._changed = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, "submarine-save")
        self._pending: Future[None] | None = None
        self._complained = False

    def changed(self) -> None:
        """Take note that the notebook has to be saved soon."""
        self._changed.set()

    def begin(self) -> None:
        """Save it before anything runs: a place that takes nothing is found out now."""
        if self.place is not None:
            self.place.write(whole(self.notebook))

    async def keep(self) -> None:
        """Save again and again; runs until it is cancelled."""
        while self.place is not None:
            await self._changed.wait()
            await asyncio.sleep(SOON)
            self._changed.clear()
            started = time.monotonic()
            # Not validated each time: that costs more than all the rest.
            data = whole(self.notebook, nbjson.writes)
            self._pending = self._pool.submit(self.place.write, data)
            try:
                await asyncio.wrap_future(self._pending)
                self._complained = False
            except (SubmarineError, OSError) as error:
                # The next one may succeed, and the run is worth more than this save.
                if not self._complained:
                    logger.warning("The output could not be saved for now: %s", error)
                self._complained = True
            await asyncio.sleep((time.monotonic() - started) / _SHARE)

    def end(self) -> None:
        """Save the notebook as it is at its end.

        Raises
        ------
        SubmarineError
            If it cannot be saved where it should; the sentence says where it is instead.
        """
        pending, self._pending = self._pending, None
        if pending is not None and not pending.cancel():
            with contextlib.suppress(SubmarineError, OSError):
                pending.result()
        self._pool.shutdown(wait=True)
        if self.place is None:
            return
        data = whole(self.notebook)
        for attempt in range(1, _TRIES + 1):
            try:
                self.place.write(data)
                return
            except SubmarineError as error:
                if attempt == _TRIES:
                    kept = _keep_elsewhere(self.place, data)
                    if kept is None:
                        raise
                    fix = f"It is in {kept}."
                    raise type(error)(error.message, fix) from None
            time.sleep(attempt)


def whole(notebook: Any, writes: Any = nbformat.writes) -> bytes:
    """The notebook as a file."""
    text: str = writes(notebook)
    return text.encode("utf-8", "replace")


def _keep_elsewhere(place: Place, data: bytes) -> Path | None:
    """The path on this machine where an output now lies that its own place did not take."""
    name = place.url.rstrip("/").rpartition("/")[2] or "output.ipynb"
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = default_state_dir() / "unsaved" / f"{moment}-{name[:120]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_by_rename(path, data)
    except OSError:
        return None
    return path


class SavingManager(NotebookExecutionManager):  # type: ignore[misc]
    """Papermill's account of a run, saved by ``Output`` in place of at every cell.

    Attributes
    ----------
    ended_early
        Cells that did not run stay ``pending``; papermill would call them completed.
    """

    def __init__(self, output: Output, *, progress_bar: Any, log_output: bool) -> None:
        self.output = output
        self.ended_early = False
        super().__init__(output.notebook, progress_bar=progress_bar, log_output=log_output)

    def save(self, **_kwargs: Any) -> None:
        """Have it saved soon."""
        self.output.changed()

    def autosave_cell(self) -> None:
        """Have it saved soon."""
        self.output.changed()

    def notebook_complete(self, **kwargs: Any) -> None:
        """As papermill's, but what did not run is not called completed."""
        waiting = [cell for cell in self.nb.cells if cell.metadata.papermill.status == self.PENDING]
        super().notebook_complete(**kwargs)
        if self.ended_early:
            for cell in waiting:
                cell.metadata.papermill.status = self.PENDING
