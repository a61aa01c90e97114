"""A job in a paragraph: its display data, with curves of its metrics and a hint on commands."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from submarine_jobs.client import Job
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import SubmarineError
from submarine_jobs.outputs import MetricsReader
from submarine_jobs.text import escape_html, web_link
from submarine_runtime.protocol import State
from submarine_runtime.translation import _
from submarine_zeppelin.display.chart import MetricHistory, render_svg
from submarine_zeppelin.notes import PAUSED_NOTICE, reword

log = logging.getLogger(__name__)
#: Names of links to the cluster's page of a job, in order of preference.
_YARN_LINKS = (_("YARN log"), _("YARN application"), _("Job page"))


class ShownJob:
    """A job in the output of one run. One thread calls ``receive`` at a time.

    Attributes
    ----------
    ended, final
        Whether the job has ended, and whether its state cannot change any more.
    progress
        Progress in percent, as reported by the program.
    link
        Address of the cluster's page of the job; None if there is none.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ended = self.final = False
        self.progress = 0
        self.link: str | None = None
        #: Display id -> HTML and text of the card.
        self._cards: dict[str, tuple[str, str]] = {}
        self._started = False
        self._curves = MetricHistory()
        self._reader: MetricsReader | None = None
        self._lock = threading.Lock()

    @property
    def displays(self) -> list[str]:
        """Ids of the displays of the job."""
        return list(self._cards)

    @property
    def size(self) -> int:
        """Number of characters in memory."""
        return sum(len(html) + len(plain) for html, plain in self._cards.values())

    def receive(self, display_id: str, bundle: Mapping[str, Any]) -> None:
        """Set newer display data of the job."""
        self._cards[display_id] = (bundle["text/html"], bundle["text/plain"])
        record, state = bundle[MIME_TYPE]["record"], State(bundle[MIME_TYPE]["state"])
        self.ended = state.ended
        self.final = state.ended and state is not State.LOST
        self.progress = int(min(max(float(record.get("progress") or 0), 0), 1) * 100)
        self._started = any(task.get("started") for task in record.get("tasks") or ())
        links = record.get("links") or {}
        found = [links[name] for name in _YARN_LINKS if name in links] + list(links.values())
        self.link = next(filter(None, map(web_link, found)), None)

    def card(self, display_id: str, *, paused: bool = False) -> tuple[str, str]:
        """Return a card as HTML and as text.

        Parameters
        ----------
        paused
            The interpreter has stopped, so the card is not updated until its next start.
        """
        html, plain = self._cards[display_id]
        job_id = escape_html(self.job.id)
        hint = f"%submarine logs {job_id}</code> shows the complete log"
        if not self.ended:
            hint += f", <code>%submarine cancel {job_id}</code> cancels the job"
        notice = PAUSED_NOTICE if paused and not self.final else ""
        html = (
            f"{reword(html)}\n{render_svg(self._curves.series)}"
            f'<div style="font-size:12px;opacity:.72"><code>{hint}.{notice}</div>'
        )
        return html, reword(plain)

    def read_metrics(self) -> bool:
        """Read new metrics and return whether there were any. Blocks."""
        if not self._started:
            return False
        with self._lock:
            if self._reader is None:
                self._reader = MetricsReader(self.job.directory)
            try:
                rows = list(self._reader.fresh())
            except (SubmarineError, OSError, ValueError) as error:
                log.info("no metrics of %s: %s", self.job.id, error)
                return False
            return self._curves.add(rows)
