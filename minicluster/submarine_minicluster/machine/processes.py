"""Start detached processes, identify them later and terminate them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from submarine_runtime.files import replace_file
from submarine_runtime.processes import ProcessIdentity, read_process

_LAUNCH = 'log=$1; shift; "$@" </dev/null >"$log" 2>&1 & echo $!'


class Identity(ProcessIdentity):
    """A process on this machine that is not confused with another one of the same process id."""

    @property
    def directory(self) -> str:
        """Working directory of the process; empty if it has ended."""
        try:
            return os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return ""

    @property
    def command_line(self) -> list[str]:
        """Command line of the process; empty if it has ended."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text(errors="replace").split("\0")
        except OSError:
            return []

    def write(self, path: Path) -> None:
        """Write the identity to a pidfile."""
        replace_file(path, (json.dumps(asdict(self)) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Identity | None:
        """Return the process that a pidfile names if it runs, else None."""
        try:
            identity = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return identity if identity.alive else None


def launch(
    command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path
) -> Identity | None:
    """Start a detached process in its own session, with its output in `log`.

    A shell starts the process and exits, so it is not a child of this process and needs no reaping.

    Parameters
    ----------
    command
        Program and arguments.
    log
        File for standard output and standard error.
    env
        The complete environment.
    cwd
        Working directory.

    Returns
    -------
    Identity or None
        None if the process ended at once; `log` contains the reason.
    """
    done = subprocess.run(
        ["/bin/sh", "-c", _LAUNCH, "sh", str(log), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
        check=True,
        timeout=30,
    )
    return Identity.of(int(done.stdout))


def terminate(processes: Iterable[Identity], *, grace: float) -> None:
    """Send SIGTERM to processes, and SIGKILL to those that still run after `grace` seconds."""
    waiting = [process for process in processes if process.signal(signal.SIGTERM)]
    deadline = time.monotonic() + grace
    while (waiting := [process for process in waiting if process.alive]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    for process in waiting:
        process.signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while any(process.alive for process in waiting) and time.monotonic() < deadline:
        time.sleep(0.02)


def find_marked(variable: str, value: str, *, below: bool = False) -> list[Identity]:
    """Find the processes with an environment variable, and the other processes of their sessions.

    Containers inherit the environment of the daemons, so one variable finds all of them in any
    process group or session. A program without that variable is found by the session of the
    container that started it. This process, its ancestors and the other members of their sessions
    (such as a terminal's) are left out. With `below`, the value may also be a path below `value`.
    """
    needle = f"{variable}={value}".encode()
    own = _ancestors(os.getpid())
    found: set[int] = set()
    sessions: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        process = read_process(pid)
        if process is None:
            continue
        sessions.setdefault(process.session, []).append(pid)
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            if needle in environ or (
                below and any(word.startswith(needle + b"/") for word in environ)
            ):
                found.add(pid)
        except OSError:  # of another user, or ended
            continue
    for members in sessions.values():
        if found.intersection(members) and not own.intersection(members):
            found.update(members)
    return [one for pid in found - own if (one := Identity.of(pid))]


def session_members(process: Identity) -> list[Identity]:
    """Return the other processes of a process's session; none if this process belongs to it."""
    found = read_process(process.pid)
    if found is None:
        return []
    members: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        other = read_process(int(entry.name))
        if other and other.session == found.session:
            members.add(int(entry.name))
    if members & _ancestors(os.getpid()):
        return []
    return [one for pid in members - {process.pid} if (one := Identity.of(pid))]


def _ancestors(pid: int) -> set[int]:
    """Return a process id and the process ids of its ancestors."""
    chain: set[int] = set()
    while pid > 0 and pid not in chain:
        chain.add(pid)
        process = read_process(pid)
        pid = process.parent if process else 0
    return chain
