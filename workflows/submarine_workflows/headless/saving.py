"""Save the output notebook while it runs: atomically, rate limited, without blocking the run.

The notebook is encoded in the event loop's thread, where it changes, and written in another thread,
because file systems may be slow.
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
from submarine_runtime.translation import _
from submarine_workflows.locations import Location, write_by_rename

#: Seconds between a change and its save.
SAVE_DELAY = 1.0
#: Maximum share of time spent on saving.
_MAX_SAVING_SHARE = 0.05
_MIN_ATTEMPTS = 3
_RETRY_WAIT = tenacity.wait_exponential(multiplier=1, max=10)


class OutputNotebook:
    """Output notebook and its location.

    Parameters
    ----------
    location
        None: the notebook is not saved while it runs.
    """

    def __init__(self, notebook: Any, location: Location | None) -> None:
        self.notebook = notebook
        self.location = location
        self._changed = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, "submarine-save")
        self._pending: Future[None] | None = None
        self._warned = False

    def changed(self) -> None:
        """Request a save."""
        self._changed.set()

    def save_initial(self) -> None:
        """Save before the run, so that an unwritable location is detected early."""
        if self.location is not None:
            self.location.write(encode_notebook(self.notebook))

    async def save_changes(self) -> None:
        """Save after changes, until cancelled."""
        while self.location is not None:
            await self._changed.wait()
            await asyncio.sleep(SAVE_DELAY)
            self._changed.clear()
            started = time.monotonic()
            # Validation costs more than everything else, so it is omitted here.
            data = encode_notebook(self.notebook, nbjson.writes)
            self._pending = self._pool.submit(self.location.write, data)
            try:
                await asyncio.wrap_future(self._pending)
                self._warned = False
            except (SubmarineError, OSError) as error:
                # The next save may succeed; the run continues.
                if not self._warned:
                    logger.warning("The output could not be saved yet: %s", error)
                self._warned = True
            await asyncio.sleep((time.monotonic() - started) / _MAX_SAVING_SHARE)

    def save_final(self, stopped: Callable[[], object] = lambda: False) -> None:
        """Save the final notebook; retry for the ``retry_seconds`` of the location.

        Parameters
        ----------
        stopped
            Returns whether the run was stopped; then three attempts are sufficient.

        Raises
        ------
        SubmarineError
            If it cannot be saved there; the message contains the alternative location.
        """
        pending, self._pending = self._pending, None
        if pending is not None and not pending.cancel():
            with contextlib.suppress(SubmarineError, OSError):
                pending.result()
        self._pool.shutdown(wait=True)
        if self.location is None:
            return
        _save_with_retries(self.location, encode_notebook(self.notebook), stopped)


def _save_with_retries(location: Location, data: bytes, stopped: Callable[[], object]) -> None:
    kept: Path | None = None

    def keep(state: tenacity.RetryCallState) -> None:
        nonlocal kept
        if state.attempt_number == 1:
            # Immediately: a stopped process does not wait for the location.
            kept = _keep_elsewhere(location, data)
            error = state.outcome.exception() if state.outcome else None
            logger.warning("The output could not be saved and is tried again: %s", error)

    def enough(state: tenacity.RetryCallState) -> bool:
        late = (state.seconds_since_start or 0.0) >= location.retry_seconds
        return late or (state.attempt_number >= _MIN_ATTEMPTS and bool(stopped()))

    retry = tenacity.Retrying(
        stop=enough,
        wait=_RETRY_WAIT,
        retry=tenacity.retry_if_exception_type(SubmarineError),
        after=keep,
        reraise=True,
    )
    try:
        retry(location.write, data)
    except SubmarineError as error:
        if kept is None:
            raise
        raise type(error)(error.message, _("It is in {kept}.").format(kept=kept)) from None
    if kept is not None:
        kept.unlink(missing_ok=True)


def encode_notebook(notebook: Any, writes: Any = nbformat.writes) -> bytes:
    """Return the encoded notebook."""
    text: str = writes(notebook)
    return text.encode("utf-8", "replace")


def _keep_elsewhere(location: Location, data: bytes) -> Path | None:
    """Save an output to the state directory; return its path, or None."""
    name = location.url.rstrip("/").rpartition("/")[2] or "output.ipynb"
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = default_state_dir() / "unsaved" / f"{moment}-{name[:120]}"
    try:
        make_private(path.parent)
        write_by_rename(path, data)
    except OSError:
        return None
    return path


class SavingManager(NotebookExecutionManager):  # type: ignore[misc]
    """Papermill's execution manager, with saving by ``OutputNotebook`` instead of after each cell.

    Attributes
    ----------
    ended_early
        Keep cells that did not run ``pending``; papermill marks them as completed.
    """

    def __init__(self, output: OutputNotebook, *, progress_bar: Any, log_output: bool) -> None:
        self.output = output
        self.ended_early = False
        super().__init__(output.notebook, progress_bar=progress_bar, log_output=log_output)

    def save(self, **_kwargs: Any) -> None:
        """Request a save."""
        self.output.changed()

    def autosave_cell(self) -> None:
        """Request a save."""
        self.output.changed()

    def notebook_complete(self, **kwargs: Any) -> None:
        """Complete the notebook as papermill does, except cells that did not run."""
        waiting = [cell for cell in self.nb.cells if cell.metadata.papermill.status == self.PENDING]
        super().notebook_complete(**kwargs)
        if self.ended_early:
            for cell in waiting:
                cell.metadata.papermill.status = self.PENDING
