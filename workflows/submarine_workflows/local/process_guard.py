"""Shell process that ends the process groups of nodes after the runner was killed.

The runner writes the groups to a pipe. When the pipe closes, for any reason, the shell sends
SIGTERM first, so that nodes cancel their jobs, and SIGKILL later. A node's program starts only
after its group has been written (``gate``), so no group is missed.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress

from submarine_runtime.processes import shell_on_a_pipe

#: Seconds between SIGTERM and SIGKILL, as in Azkaban (``ProcessJob.KILL_TIME``).
GRACE = 30
_SCRIPT = f"""\
trap '' TERM INT HUP
groups=
while read -r line; do groups=$line; done
for group in $groups; do kill -s TERM -- "-$group"; done
tries=0
while [ -n "$groups" ] && [ $tries -lt {GRACE * 5} ]; do
  left=
  for group in $groups; do kill -s 0 -- "-$group" && left="$left $group"; done
  groups=$left
  [ -n "$groups" ] && sleep 0.2
  tries=$((tries + 1))
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class ProcessGuard:
    """The shell and its process groups.

    Parameters
    ----------
    lock
        File descriptor inherited by the shell: a lock that is held until all groups have ended.

    Raises
    ------
    OSError
        If the shell cannot be started.
    """

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._groups: set[int] = set()
        self._guard = threading.Lock()
        self._pipe = -1
        self._start()

    def _start(self) -> None:
        self._pipe = -1
        self._shell, self._pipe = shell_on_a_pipe(_SCRIPT, (self._lock,))

    def add(self, group: int) -> None:
        """Add a group to end if the runner ends.

        Raises
        ------
        OSError
            If the shell has ended and no other can be started.
        """
        with self._guard:
            self._groups.add(group)
            try:
                self._tell()
            except BrokenPipeError:  # the shell was killed: start another
                os.close(self._pipe)
                self._shell.wait()
                self._start()
                self._tell()

    def remove(self, group: int) -> None:
        """Remove a group that has ended."""
        with self._guard, suppress(OSError):
            self._groups.discard(group)
            self._tell()

    def release(self, *, done: bool = True) -> None:
        """End the shell; unless ``done``, it ends the remaining groups first."""
        with self._guard:
            if self._pipe < 0:
                return
            if done:
                with suppress(OSError):
                    self._groups.clear()
                    self._tell()
            os.close(self._pipe)
            self._pipe = -1
        try:
            self._shell.wait(10 if done else GRACE + 10)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()

    def _tell(self) -> None:
        words = " ".join(map(str, sorted(self._groups)))
        os.write(self._pipe, f"{words}\n".encode())
