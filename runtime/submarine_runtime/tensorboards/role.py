"""``runtime.zip tensorboard``: TensorBoard in a container, for one job or all jobs of a user.

Copies new event files from the job directories to a local directory every few seconds and runs
TensorBoard of the job's Python on that directory (``server``). An ended job is copied once.
TensorBoard does not authenticate clients: every client that can connect to the port can read the
curves.
"""

from __future__ import annotations

import json
import os
import posixpath
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Iterator, Sequence

from submarine_runtime.agent.program import runtime_path
from submarine_runtime.network import Reservation
from submarine_runtime.protocol import AgentConfig, from_json, layout
from submarine_runtime.storage import Store, StoreError, open_store
from submarine_runtime.tensorboards.job_files import DiskQuota, DiskQuotaError, JobFiles

#: Seconds between two updates, and between two listings of a user's jobs.
UPDATE_SECONDS, LIST_SECONDS = 5.0, 30.0
#: Limits: newest jobs of a user that are shown, bytes on the local disk.
MAX_JOBS = 500
MAX_BYTES = 4 << 30
PORT_VARIABLE = "SUBMARINE_PORT"
#: Seconds that TensorBoard has to end after a signal, before the next signal is sent.
END_SECONDS = 3.0


class History:
    """All jobs of a user, and which of them still change.

    Parameters
    ----------
    store
        The store of the job that this TensorBoard belongs to.
    root
        The user's job root.
    own
        Id of that job; it has no curves.
    target
        Local directory with one directory for each job.
    """

    def __init__(self, store: Store, root: str, own: str, target: str, quota: DiskQuota) -> None:
        self._store, self._root, self._own = store, root, own
        self._target, self._quota = target, quota
        self._done: set[str] = set()
        self._open: dict[str, JobFiles] = {}
        self._listed = float("-inf")

    def update(self) -> None:
        """Copy what is new."""
        if time.monotonic() - self._listed >= LIST_SECONDS:
            newest = [job for job in self._newest() if job not in self._done]
            self._open = {job: self._open.get(job) or self._files(job) for job in newest}
            self._listed = time.monotonic()
        for job, files in list(self._open.items()):
            files.update()
            if files.complete:
                self._done.add(job)
                del self._open[job]

    def _files(self, job: str) -> JobFiles:
        target = os.path.join(self._target, posixpath.basename(job))
        return JobFiles(self._store, job, target, self._quota)

    def _newest(self) -> list[str]:
        found: list[tuple[float, str]] = []
        for month in sorted((e.name for e in self._store.entries(self._root)), reverse=True):
            if len(month) != 6 or not month.isdigit():
                continue
            found += [
                (entry.modified, f"{self._root}/{month}/{entry.name}")
                for entry in self._store.entries(f"{self._root}/{month}")
                if layout.is_job_id(entry.name) and entry.name != self._own
            ]
            if len(found) >= MAX_JOBS:
                break
        return [job for _, job in sorted(found, reverse=True)[:MAX_JOBS]]


def main(arguments: Sequence[str]) -> int:
    """Run until TensorBoard ends; ``--directory DIR [--history]``."""
    words = list(arguments)
    directory = os.path.abspath(words[words.index("--directory") + 1])
    with open(os.path.join(directory, layout.AGENT), encoding="utf-8") as file:
        config = from_json(AgentConfig, json.load(file))
    store = open_store(config.store)
    target = os.path.join(directory, "tensorboard-view")
    os.makedirs(target, 0o700, exist_ok=True)
    port = int(os.environ.get(PORT_VARIABLE) or _free_port(config.port_range))
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _serve(words, directory, config, store, target, port)
    except _SigtermInterrupt:
        # End by the signal, like a program without a handler.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    return _ended(code, config)


class _SigtermInterrupt(BaseException):
    """SIGTERM has arrived."""


def _terminated(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _SigtermInterrupt


def _serve(
    words: list[str], directory: str, config: AgentConfig, store: Store, target: str, port: int
) -> int:
    """Run TensorBoard and copy event files until it ends; return its exit code."""
    process = subprocess.Popen(_command(config, directory, target, port), stdin=subprocess.DEVNULL)
    try:
        print(f"TensorBoard listens at http://{socket.gethostname()}:{port}/", flush=True)
        _fetch(words, process, config, store, target)
    finally:
        _end(process)
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait until TensorBoard has ended; otherwise the agent reports a remaining process.

    A signal is sent to the whole process group, so TensorBoard usually has received it.
    """
    for send_signal in (None, process.terminate, process.kill):
        if send_signal is not None:
            send_signal()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            return


def _fetch(
    words: list[str],
    process: subprocess.Popen[bytes],
    config: AgentConfig,
    store: Store,
    target: str,
) -> None:
    quota = DiskQuota(target, MAX_BYTES)
    files: History | JobFiles
    if "--history" in words:
        root = posixpath.dirname(posixpath.dirname(config.store.path.rstrip("/")))
        files = History(store, root, config.record.job_id, target, quota)
    else:
        files = JobFiles(store, "", target, quota)
    reported = ""
    for _ in _intervals(process):
        error = _update(files)
        if error and error != reported:
            print(f"Event files could not be fetched: {error}", file=sys.stderr, flush=True)
        reported = error


def _update(files: History | JobFiles) -> str:
    """Copy once; return an error, after which the next update tries again."""
    try:
        files.update()
    except (StoreError, OSError, DiskQuotaError) as exc:
        return str(exc)
    return ""


def _intervals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Yield every ``UPDATE_SECONDS`` while TensorBoard runs."""
    while process.poll() is None:
        yield
        with suppress(subprocess.TimeoutExpired):
            process.wait(UPDATE_SECONDS)


def _command(config: AgentConfig, directory: str, target: str, port: int) -> list[str]:
    python = config.interpreter
    if "/" in python:
        python = os.path.join(directory, python)
    options = ["--logdir", target, "--port", str(port), "--bind_all", "--reload_interval", "5"]
    return [python, runtime_path(), "tensorboard-server", *options]


def _ended(code: int, config: AgentConfig) -> int:
    if code > 0:
        print(
            f"TensorBoard ended with exit code {code}. The job's Python, {config.interpreter}, "
            "must have the package tensorboard; --python-env chooses another.",
            file=sys.stderr,
            flush=True,
        )
    return code if code >= 0 else 128 - code


def _free_port(ports: str) -> int:
    """Return a port that is free at present; TensorBoard binds it within a second or two."""
    found = Reservation(1, ports)
    found.release()
    return found.ports[0]
