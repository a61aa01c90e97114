"""The step that a submit is at: one line that is renewed.

Does not submit (``submit``) and does not know how a line is renewed (its front end does).
"""

from __future__ import annotations

import time
from types import TracebackType

from submarine_jobs.frontends.base import Frontend
from submarine_jobs.text import size
from submarine_runtime.translation import _, gettext_noop

_WORDS = {
    "reading": gettext_noop("Reading this environment"),
    "packing": gettext_noop("Packing this environment"),
    "uploading": gettext_noop("Uploading the environment"),
}
ASKING = gettext_noop("Asking the cluster for its queues and nodes")
WAITING = gettext_noop("Submitted, waiting for the application master")
#: Seconds between two renewals.
_PAUSE = 0.2


class SubmitProgress:
    """The line of one submit; take it away by leaving its ``with``."""

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
            self._frontend.renew("")

    def show(self, step: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes are through ``step``; may be called for each file.

        A step has a name of an environment's, or is in words. A front end that cannot renew a line
        says one for each step.
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
        if not self._frontend.renew(words + part) and began:
            self._frontend.say(f"{words}{whole} ...")
