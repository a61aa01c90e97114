"""List and fetch files of s3://, gs:// and http(s):// with the fsspec of the job's environment.

The agent has the standard library only, so the program's interpreter runs ``launcher/remote_files``
with the environment of the program, which contains the credentials.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from queue import Empty, SimpleQueue
from typing import Any, Callable, Sequence

from submarine_runtime.agent.program import (
    OWN,
    copy_runtime_files,
    interpreter,
    secret_values,
)
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.storage import FileRequest, Scratch, make_directories
from submarine_runtime.translation import _

_SCRIPT = "remote_files.py"
POLL_SECONDS = 0.5


class RemoteError(Exception):
    """A remote file could not be listed or fetched; one sentence.

    ``full``: the node's disk is full.
    """

    def __init__(self, message: str, full: bool = False) -> None:
        super().__init__(message)
        self.full = full


def list_remote(
    config: AgentConfig, scratch: Scratch, uri: str, limit: int, poll: Callable[[int], None]
) -> tuple[list[tuple[str, int, str]], bool]:
    """Return (path below the input, size, URI) of each file, and whether it is a single file.

    Parameters
    ----------
    limit
        Maximum number of files.
    poll
        Called in this thread, twice a second; an exception that it raises ends the work.
    """
    answer = _run(config, scratch, {"list": uri, "limit": limit}, poll, uri)
    files = [(str(name), int(size), str(source)) for name, size, source in answer["files"]]
    return files, bool(answer["single"])


def fetch_remote(
    config: AgentConfig,
    scratch: Scratch,
    requests: Sequence[FileRequest],
    poll: Callable[[int], None],
) -> None:
    """Fetch files; ``poll`` is called with the bytes of the complete ones."""
    order = {"fetch": [[file.source, file.target, file.size] for file in requests]}
    _run(config, scratch, order, poll, requests[0].source)


def _run(
    config: AgentConfig, scratch: Scratch, order: Any, poll: Callable[[int], None], uri: str
) -> dict[str, Any]:
    """Run the script; return the last line of its output."""
    directory = scratch.path("remote")
    make_directories(directory)
    copy_runtime_files((_SCRIPT,), directory, "launcher")
    python = interpreter(config, scratch)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
    environment.update(config.env)
    try:
        environment.update(secret_values(config, scratch))
        child = subprocess.Popen(
            [python, os.path.join(directory, _SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=scratch.root,
            env=environment,
        )
    except (OSError, ValueError) as exc:
        raise RemoteError(
            _("{python} cannot be started: {error}").format(python=python, error=exc)
        ) from exc
    assert child.stdin is not None
    assert child.stdout is not None
    lines: SimpleQueue[bytes] = SimpleQueue()
    output = child.stdout

    def read() -> None:
        for line in output:
            lines.put(line)
        lines.put(b"")

    try:
        threading.Thread(target=read, name="remote-files", daemon=True).start()
        try:
            child.stdin.write(json.dumps(order).encode())
            child.stdin.close()
        except BrokenPipeError:
            pass  # It has ended; its exit status is reported below.
        answer: dict[str, Any] = {}
        while True:
            try:
                line = lines.get(timeout=POLL_SECONDS)
            except Empty:
                line = b"{}"
            if not line:
                break
            answer = json.loads(line) or answer
            poll(int(answer.get("done") or 0))
        status = child.wait()
    finally:
        child.kill()
        child.wait()
        output.close()
    if "error" in answer:
        raise _error(python, str(answer["uri"] or uri), answer)
    if status or not answer.keys() & {"files", "finished"}:
        raise RemoteError(
            _("{uri} cannot be read: {python} ended with status {status}").format(
                uri=uri, python=python, status=status
            )
        )
    return answer


def _error(python: str, uri: str, answer: dict[str, Any]) -> RemoteError:
    kind, text = answer.get("kind"), str(answer["error"])
    if kind == "import":
        return RemoteError(
            _(
                "{python} cannot read {uri}: {error}; install fsspec and the package for it in the "
                "job's environment"
            ).format(python=python, uri=uri, error=text)
        )
    if kind == "missing":
        return RemoteError(
            _("there is nothing at {uri}, or it was removed since the submission").format(uri=uri)
        )
    message = _("{uri} cannot be read: {error}").format(uri=uri, error=text)
    return RemoteError(message, kind == "full")
