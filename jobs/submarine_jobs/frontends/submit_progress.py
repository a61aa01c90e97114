"""Show the current step of a submission in one line.

The front end replaces the line; ``submit`` calls ``SubmitProgress.show``.
"""

from __future__ import annotations

import time
from types import TracebackType

from submarine_jobs.frontends.base import Frontend
from submarine_jobs.text import size
from submarine_runtime.translation import _, gettext_noop

_WORDS = {
    "building": gettext_noop("Building the environment"),
    "reading": gettext_noop("Reading this environment"),
    "packing": gettext_noop("Packing this environment"),
    "uploading": gettext_noop("Uploading the environment"),
}
ASKING = gettext_noop("Asking the cluster for its queues and nodes")
WAITING = gettext_noop("Submitted, waiting for the application master")
#: Minimum number of seconds between two updates.
_PAUSE = 0.2


class SubmitProgress:
    """The line of one submission; the end of the ``with`` block removes it."""

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend
        self._step = ""
        self._shown = 0.0

    def __enter__(self) -> SubmitProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._step:
            self._frontend.show_progress("")

    def show(self, step: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes of ``step`` are complete; called for each file.

        ``step`` is a key of ``_WORDS`` or a text. A front end that cannot replace a line shows one
        line for each step.
        """
        now = time.monotonic()
        began = step != self._step
        if not began and done < total and now < self._shown + _PAUSE:
            return
        self._step, self._shown = step, now
        words = _(_WORDS.get(step, step))
        whole = f" ({size(total)})" if total else ""
        part = (
            _(": {percent} % of {size}").format(percent=100 * done // total, size=size(total))
            if total
            else " ..."
        )
        if not self._frontend.show_progress(words + part) and began:
            self._frontend.say(f"{words}{whole} ...")
