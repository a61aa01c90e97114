"""Run heavy calls in a short-lived subprocess, so that a long-lived process stays small.

A submit to YARN imports gRPC and cryptography, which use 25 MB until the process ends. A process
that runs for weeks and submits rarely, such as Zeppelin's interpreter, runs these calls in a
subprocess, which takes a third of a second each. Arguments and results are JSON and go through
pipes, because other users can read command lines.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_runtime.translation import _

#: Seconds between two checks for an interrupt of the caller.
_POLL_SECONDS = 0.2
_TERMINATE_SECONDS = 3.0
_enabled = False


class SubprocessCallError(ClusterError):
    """The subprocess returned no result: the outcome of the call is not known."""


def use_subprocesses(enabled: bool = True) -> None:
    """Set whether this process runs heavy calls in subprocesses."""
    global _enabled
    _enabled = enabled


def uses_subprocesses() -> bool:
    """Return whether this process runs heavy calls in subprocesses."""
    return _enabled


def call_in_subprocess(function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
    """Call a module-level function in a subprocess.

    Parameters
    ----------
    function
        Its arguments and its result must be JSON values; paths are passed as strings.
    seconds
        Timeout, after which the subprocess is terminated.

    Raises
    ------
    SubmarineError
        If the function raises it.
    SubprocessCallError
        If the subprocess does not start, is terminated, or returns no result in time.
    """
    request = {"module": function.__module__, "name": function.__qualname__, "arguments": arguments}
    answer = json.loads(_answer(json.dumps(request, default=os.fspath), seconds))
    if "error" in answer:
        _raise(answer)
    return answer["result"]


def _answer(request: str, seconds: float) -> str:
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise SubprocessCallError(
            _("{executable} cannot be started: {error}.").format(
                executable=sys.executable, error=error.strerror
            )
        ) from error
    with process:
        try:
            output, errors = _communicate(process, request, seconds)
        finally:
            _end(process)
    if process.returncode != 0:
        last = (errors.strip().splitlines() or [_("no output")])[-1][:300]
        raise SubprocessCallError(
            _("The subprocess of a cluster call ended early: {error}").format(error=last)
        )
    return output


def _communicate(process: subprocess.Popen[str], request: str, seconds: float) -> tuple[str, str]:
    """Return standard output and standard error; poll, so that an interrupt is noticed."""
    until, pending = time.monotonic() + seconds, request
    while time.monotonic() < until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(pending or None, timeout=_POLL_SECONDS)
        pending = ""
    raise SubprocessCallError(
        _("The subprocess of a cluster call took more than {seconds:g} s.").format(seconds=seconds)
    )


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_TERMINATE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _raise(answer: Mapping[str, Any]) -> NoReturn:
    """Raise the error of the subprocess with its attributes."""
    kind = getattr(importlib.import_module(answer["module"]), answer["error"])
    error = kind.__new__(kind, answer["text"])
    vars(error).update(answer["attributes"])
    raise error


def main() -> int:
    """Read one call from standard input and write its result to standard output."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output of libraries must not mix with the result.
    request = json.load(sys.stdin)
    function = getattr(importlib.import_module(request["module"]), request["name"])
    try:
        answer = {"result": function(*request["arguments"])}
    except SubmarineError as error:
        kind = type(error)
        answer = {
            "error": kind.__qualname__,
            "module": kind.__module__,
            "text": str(error),
            "attributes": vars(error),
        }
    with stream:
        json.dump(answer, stream)
    return 0


if __name__ == "__main__":
    sys.exit(main())
