"""Keeps the output notebook on disk while it grows: whole each time, not too often, never waiting.

The notebook is made into text where it changes, in the event loop's thread; it is written in a
thread of its own, since a file system may take its time. Does not know what is executed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import tenacity
from nbformat.v4 import nbjson
from papermill.engines import NotebookExecutionManager
from papermill.log import logger

from submarine_jobs.config import make_private
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import default_state_dir
from submarine_workflows.locations import Place, write_by_rename

#: Seconds from a change to its being saved.
SOON = 1.0
#: A save may take this share of the time.
_SHARE = 0.05
_TRIES = 3
_PAUSES = tenacity.wait_exponential(multiplier=1, max=10)


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

    def end(self, hurried: Callable[[], object] = lambda: False) -> None:
        """Save the notebook as it is at its end, tried for as long as the place is worth it.

        Parameters
        ----------
        hurried
            Whether somebody wants the run to be over: three tries are enough then.

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
        _save_at_last(self.place, whole(self.notebook), hurried)


def _save_at_last(place: Place, data: bytes, hurried: Callable[[], object]) -> None:
    kept: Path | None = None

    def keep(state: tenacity.RetryCallState) -> None:
        nonlocal kept
        if state.attempt_number == 1:
            # Now: whoever ends this process does not wait until the place is back.
            kept = _keep_elsewhere(place, data)
            error = state.outcome.exception() if state.outcome else None
            logger.warning("The output is not saved yet, and is tried again: %s", error)

    def enough(state: tenacity.RetryCallState) -> bool:
        late = (state.seconds_since_start or 0.0) >= place.patience
        return late or (state.attempt_number >= _TRIES and bool(hurried()))

    retry = tenacity.Retrying(
        stop=enough,
        wait=_PAUSES,
        retry=tenacity.retry_if_exception_type(SubmarineError),
        after=keep,
        reraise=True,
    )
    try:
        retry(place.write, data)
    except SubmarineError as error:
        if kept is None:
            raise
        raise type(error)(error.message, f"It is in {kept}.") from None
    if kept is not None:
        kept.unlink(missing_ok=True)


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
        make_private(path.parent)
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
