"""The command ``tensorboard JOB...``: link to a job's TensorBoard, or start one here.

A TensorBoard on this machine listens on loopback with a secret path and ends with the interpreter.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

# Its modules load at the first use of a name: most processes start no TensorBoard.
from submarine_jobs import tensorboards
from submarine_jobs.client import Job
from submarine_jobs.errors import UsageError
from submarine_jobs.text import escape_html, web_link
from submarine_runtime.translation import _
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend

#: Maximum number of TensorBoards. The oldest is stopped for a new one.
MAX_TENSORBOARDS = 5


class LocalTensorBoards:
    """TensorBoards that one interpreter has started on this machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instances: dict[tuple[str, ...], tensorboards.TensorBoardInstance] = {}

    def show(self, words: Sequence[str], frontend: ZeppelinFrontend) -> bool:
        """Show a link for each job with its own TensorBoard, and one link for all other jobs."""
        names = [word for word in words if not word.startswith("-")]
        if len(names) != len(words):
            raise UsageError(
                _("tensorboard has no options in a paragraph."), _("Use tensorboard JOB ...")
            )
        session = frontend.session(frontend.config())
        jobs = {job.id: job for job in map(session.job, names or ["last"])}
        rest: list[Job] = []
        for job in jobs.values():
            url = web_link(job.record().links.get("TensorBoard"))
            if url is None or job.record().state.ended:
                rest.append(job)
            else:
                frontend.add_html(
                    _link(
                        _("TensorBoard of {id}").format(id=job.id),
                        url,
                        _("in the job's containers"),
                    )
                )
        if len(rest) > tensorboards.MAX_JOBS:
            raise UsageError(
                _("A TensorBoard shows at most {max_jobs} jobs.").format(
                    max_jobs=tensorboards.MAX_JOBS
                ),
                _("Name fewer jobs."),
            )
        if rest:
            instance = self._start_instance(rest)
            where = _("only on Zeppelin's machine; from other machines through an SSH tunnel")
            title = _("TensorBoard of {rest}").format(rest=", ".join(job.id for job in rest))
            frontend.add_html(_link(title, instance.process.url, where))
            for notice in instance.notices():
                frontend.say(notice)
        return True

    def close(self) -> None:
        """Stop all TensorBoards."""
        with self._lock:
            instances, self._instances = list(self._instances.values()), {}
        for instance in instances:
            instance.close()

    def _start_instance(self, jobs: list[Job]) -> tensorboards.TensorBoardInstance:
        key = tuple(sorted(job.id for job in jobs))
        with self._lock:
            instance = self._instances.get(key)
            if instance is None:
                instance = tensorboards.TensorBoardInstance(
                    jobs, jobs[0].session.profile.state_dir, on_socket=False
                )
                self._instances[key] = instance
            old = (
                [self._instances.pop(next(iter(self._instances)))]
                if len(self._instances) > MAX_TENSORBOARDS
                else []
            )
        for one in old:
            one.close()
        instance.start()
        return instance


def _link(what: str, url: str, where: str) -> str:
    return (
        f'<p>{escape_html(what)}: <a href="{escape_html(url, 2000)}" target="_blank" '
        f'rel="noopener noreferrer">{escape_html(url, 2000)}</a> ({escape_html(where)})</p>'
    )
