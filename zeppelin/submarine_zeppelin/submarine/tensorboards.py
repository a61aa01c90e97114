"""TensorBoard for a paragraph: the job's own where it has one, else one on Zeppelin's machine.

The one on this machine listens on loopback with a secret path, as that of a terminal does, and is
gone with the interpreter. What it shows is ``submarine_jobs.tensorboards``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from submarine_jobs.client import Job
from submarine_jobs.errors import UsageError
from submarine_jobs.tensorboards import MAX_JOBS, Board
from submarine_jobs.text import escaped, web_link
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend

#: TensorBoards at the same time; the oldest ends for a newer one.
MOST = 5


class LocalBoards:
    """The TensorBoards of one interpreter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boards: dict[tuple[str, ...], Board] = {}

    def show(self, words: Sequence[str], frontend: ZeppelinFrontend) -> bool:
        """``tensorboard JOB...``: a link for each job that has its own, one for all others."""
        names = [word for word in words if not word.startswith("-")]
        if len(names) != len(words):
            raise UsageError("tensorboard takes no options here.", "Write tensorboard JOB ...")
        session = frontend.session(frontend.config())
        jobs = {job.id: job for job in map(session.job, names or ["last"])}
        rest: list[Job] = []
        for job in jobs.values():
            url = web_link(job.record().links.get("TensorBoard"))
            if url is None or job.record().state.ended:
                rest.append(job)
            else:
                frontend.page.html(
                    _link(f"TensorBoard of {job.id}", url, "in the job's containers")
                )
        if len(rest) > MAX_JOBS:
            raise UsageError(f"A TensorBoard shows at most {MAX_JOBS} jobs.", "Name fewer.")
        if rest:
            board = self._board(rest)
            where = "on the machine of Zeppelin only; from elsewhere through an SSH tunnel"
            shown = f"TensorBoard of {', '.join(job.id for job in rest)}"
            frontend.page.html(_link(shown, board.process.url, where))
            for notice in board.notices():
                frontend.page.say(notice)
        frontend.page.show()
        return True

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            boards, self._boards = list(self._boards.values()), {}
        for board in boards:
            board.close()

    def _board(self, jobs: list[Job]) -> Board:
        key = tuple(sorted(job.id for job in jobs))
        with self._lock:
            board = self._boards.get(key)
            if board is None:
                board = Board(jobs, jobs[0].session.profile.state_dir, on_socket=False)
                self._boards[key] = board
            old = [self._boards.pop(next(iter(self._boards)))] if len(self._boards) > MOST else []
        for one in old:
            one.close()
        board.start()
        return board


def _link(what: str, url: str, where: str) -> str:
    return (
        f'<p>{escaped(what)}: <a href="{escaped(url, 2000)}" target="_blank" '
        f'rel="noopener noreferrer">{escaped(url, 2000)}</a> ({escaped(where)})</p>'
    )
