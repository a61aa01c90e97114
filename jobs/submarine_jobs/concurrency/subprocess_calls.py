"""Calls of ours in a process that ends with its answer, for a process that is to stay small.

gRPC and cryptography, which a submit to YARN takes, stay in memory for as long as a process lives:
25 MB. One that lives for weeks and submits now and then, as Zeppelin's interpreter, has such calls
made elsewhere for a third of a second each. Arguments and answers are JSON and go through pipes,
since command lines are everybody's to read. Chooses no calls.
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

#: Seconds between two looks whether the caller was interrupted.
_LOOK = 0.2
_TO_END = 3.0
_chosen = False


class ApartError(ClusterError):
    """The other process gave no answer: what became of the call is not known."""


def stay_small(small: bool = True) -> None:
    """Choose, for this process, whether calls that load much are made in another."""
    global _chosen
    _chosen = small


def stays_small() -> bool:
    """Whether that was chosen."""
    return _chosen


def call_apart(function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
    """Call a function of a module in a process of its own.

    Parameters
    ----------
    function
        One that its module has under its name, of values that JSON knows; paths become texts.
    seconds
        After which the process is ended.

    Raises
    ------
    SubmarineError
        That of the function.
    ApartError
        If the process does not start, is ended, or does not answer in time.
    """
    asked = {"module": function.__module__, "name": function.__qualname__, "arguments": arguments}
    answer = json.loads(_answer(json.dumps(asked, default=os.fspath), seconds))
    if "error" in answer:
        _raise(answer)
    return answer["result"]


def _answer(asked: str, seconds: float) -> str:
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
        raise ApartError(f"{sys.executable} cannot be started: {error.strerror}.") from error
    with process:
        try:
            said, complaint = _talk(process, asked, seconds)
        finally:
            _end(process)
    if process.returncode != 0:
        last = (complaint.strip().splitlines() or ["it said nothing"])[-1][:300]
        raise ApartError(f"A process that asks the cluster for this one ended early: {last}")
    return said


def _talk(process: subprocess.Popen[str], asked: str, seconds: float) -> tuple[str, str]:
    """Its output and its complaints; in small steps, between which an interrupt is noticed."""
    until, words = time.monotonic() + seconds, asked
    while time.monotonic() < until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(words or None, timeout=_LOOK)
        words = ""
    raise ApartError(f"A process that asks the cluster for this one took over {seconds:g} s.")


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()


def _raise(answer: Mapping[str, Any]) -> NoReturn:
    """Raise the error that the other process had, with all that it says."""
    kind = getattr(importlib.import_module(answer["module"]), answer["error"])
    error = kind.__new__(kind, answer["text"])
    vars(error).update(answer["says"])
    raise error


def main() -> int:
    """Answer the one call that standard input asks for, on standard output."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    asked = json.load(sys.stdin)
    function = getattr(importlib.import_module(asked["module"]), asked["name"])
    try:
        answer = {"result": function(*asked["arguments"])}
    except SubmarineError as error:
        kind = type(error)
        answer = {
            "error": kind.__qualname__,
            "module": kind.__module__,
            "text": str(error),
            "says": vars(error),
        }
    with answers:
        json.dump(answer, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
