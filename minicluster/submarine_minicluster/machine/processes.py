"""Detached processes: starting them, recognising them later, ending them. Knows no Hadoop.

A pid alone does not name a process, since the kernel uses it again. What is written down is the
pid with its start time in clock ticks and the boot it belongs to, and nothing is ever signalled
unless all three agree.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from submarine_minicluster.machine.files import replace_file

_LAUNCH = 'log=$1; shift; "$@" </dev/null >"$log" 2>&1 & echo $!'


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command's name; None where there is no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _has_threads(pid: int) -> bool:
    """Whether a killed process still has threads to end, and so holds its ports and files."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Identity:
    """A process of this machine, for good.

    Attributes
    ----------
    pid
        Its process id.
    started
        Clock ticks from boot to its start.
    boot
        The kernel's id of that boot.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The identity of the live process `pid`; None where there is none."""
        fields = _stat(pid)
        if fields is None or (fields[0] in "ZX" and not _has_threads(pid)):
            return None
        return cls(pid, int(fields[19]), _boot_id())

    @property
    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return Identity.of(self.pid) == self

    @property
    def directory(self) -> str:
        """Where it works; empty where it has ended."""
        try:
            return os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return ""

    @property
    def command_line(self) -> list[str]:
        """Its words; empty where it has ended."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text(errors="replace").split("\0")
        except OSError:
            return []

    def signal(self, number: int) -> bool:
        """Send a signal if the process is still itself; whether it was sent."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def write(self, path: Path) -> None:
        """Write this pidfile."""
        replace_file(path, (json.dumps(asdict(self)) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Identity | None:
        """The process that a pidfile names if it is alive, else None."""
        try:
            identity = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return identity if identity.alive else None


def launch(
    command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path
) -> Identity | None:
    """Start a process that outlives us, in a session of its own, writing to `log`.

    A shell starts it and ends, so that it is nobody's child here and needs no reaping.

    Returns
    -------
    Identity or None
        None when the process ended before it could be looked at; `log` says why.
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


def end(processes: Iterable[Identity], *, grace: float) -> None:
    """Ask processes to end, and kill those which still run after `grace` seconds."""
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


def marked(variable: str, value: str, *, below: bool = False) -> list[Identity]:
    """Every process of this machine started with an environment variable, and its company.

    Daemons hand their environment down to the containers which they start, so that one variable
    finds them all, whatever process group or session they have moved to. A program that wiped its
    environment is still found by the session of the container that started it. The calling
    process and its ancestors are left out, and so is the company of their sessions (a terminal's).
    With `below`, the variable may also name a path under `value`.
    """
    needle = f"{variable}={value}".encode()
    own = _ancestors(os.getpid())
    found: set[int] = set()
    sessions: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        fields = _stat(pid)
        if fields is None:
            continue
        sessions.setdefault(int(fields[3]), []).append(pid)
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            if needle in environ or (
                below and any(word.startswith(needle + b"/") for word in environ)
            ):
                found.add(pid)
        except OSError:  # another user's, or gone
            continue
    for members in sessions.values():
        if found.intersection(members) and not own.intersection(members):
            found.update(members)
    return [found_one for pid in found - own if (found_one := Identity.of(pid))]


def session_of(process: Identity) -> list[Identity]:
    """The other processes of a process's session, or none if we belong to it ourselves."""
    fields = _stat(process.pid)
    if fields is None:
        return []
    members: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        other = _stat(int(entry.name))
        if other and other[3] == fields[3]:
            members.add(int(entry.name))
    if members & _ancestors(os.getpid()):
        return []
    return [one for pid in members - {process.pid} if (one := Identity.of(pid))]


def _ancestors(pid: int) -> set[int]:
    """A process id and those of its parents."""
    chain: set[int] = set()
    while pid > 0 and pid not in chain:
        chain.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return chain
