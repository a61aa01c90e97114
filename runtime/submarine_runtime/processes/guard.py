"""Kill process groups when this process has ended, by a shell that reads from a pipe.

This works however the process ends, and for shell commands and their children too, whereas
PR_SET_PDEATHSIG would reach only the first process.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import Iterable

_SCRIPT = """\
trap '' TERM INT HUP
groups=
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
"""
_MAX_GROUPS = 200


def shell_on_a_pipe(script: str, keep: tuple[int, ...] = ()) -> tuple[subprocess.Popen[bytes], int]:
    """Start a shell in its own session; return it and the write end of the pipe that it reads.

    Parameters
    ----------
    keep
        File descriptors that it inherits.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    reader, pipe = os.pipe()
    try:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=keep,
        )
    except BaseException:
        os.close(pipe)
        raise
    finally:
        os.close(reader)
    return shell, pipe


class Guard:
    """The shell.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self) -> None:
        self._watched: frozenset[int] = frozenset()
        self._always: frozenset[int] = frozenset()
        self._shell, self._pipe = shell_on_a_pipe(_SCRIPT)

    def always(self, group: int) -> None:
        """Guard this group in addition to those of ``watch``."""
        self._always |= {group}
        self.watch(self._watched)

    def watch(self, groups: Iterable[int]) -> None:
        """Set the process groups to kill when this process has ended."""
        wanted = frozenset(groups) | self._always
        if wanted != self._watched:
            self._watched = wanted
            self._send(" ".join(map(str, sorted(wanted)[:_MAX_GROUPS])))

    def release(self) -> None:
        """End the guard: there is nothing left to kill. May be called repeatedly."""
        if self._pipe < 0:
            return
        self._send("")
        os.close(self._pipe)
        self._pipe = -1
        try:
            self._shell.wait(5)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()

    def _send(self, groups: str) -> None:
        # If the guard was killed, the job continues without it.
        with suppress(OSError):
            os.write(self._pipe, f"{groups}\n".encode())
