"""Measure what a program's processes use, from ``/proc``.

A process belongs to the program if it descends from it or is in its session, so that processes
with another parent are still counted.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
#: Share of a core that scans of all of /proc may cost.
SCAN_SHARE = 0.002
#: Maximum number of seconds between YARN's check of a container's memory and its signal.
RECENT = 3.0
#: Number of the largest processes that ``quick_memory`` measures, and number of these processes
#: for which it also looks for new children.
MAX_LARGE = 16
MAX_PARENTS = 4


class Process(NamedTuple):
    """One line of /proc; memory in bytes, cpu in seconds including waited-for children.

    ``runnable``: the main thread uses a CPU or waits for one.
    """

    parent: int
    group: int
    session: int
    start: int
    memory: int
    cpu: float
    zombie: bool
    runnable: bool = False


class Usage(NamedTuple):
    """Resources of a process tree: MiB, seconds, and its process groups."""

    memory: float
    cpu_seconds: float
    groups: frozenset[int]


def read_process(pid: int) -> Process | None:
    """Return the process ``pid``; None if it has ended."""
    data = _read(f"/proc/{pid}/stat")
    # The name in parentheses may hold any characters, including parentheses and spaces.
    field = data[data.rfind(b")") + 2 :].split()
    if len(field) < 22:
        return None
    cpu = int(field[11]) + int(field[12]) + int(field[13]) + int(field[14])
    return Process(
        parent=int(field[1]),
        group=int(field[2]),
        session=int(field[3]),
        start=int(field[19]),
        memory=int(field[21]) * _PAGE,
        cpu=cpu / _TICKS,
        zombie=field[0] in (b"Z", b"X"),
        runnable=field[0] == b"R",
    )


def resident(pid: int) -> int:
    """Return the resident bytes of ``pid``; 0 if it has ended. Cheaper than ``read_process``."""
    data = _read(f"/proc/{pid}/statm").split()
    return int(data[1]) * _PAGE if len(data) > 1 else 0


def peak_resident(pid: int) -> int:
    """Return the peak resident bytes of ``pid`` (VmHWM); 0 if it has ended."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def children(pid: int) -> list[int]:
    """Return the children of the main thread of ``pid``, if the kernel lists them."""
    return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def related_processes(root: int) -> dict[int, Process]:
    """Return all living processes of ``root``'s tree and session, by pid."""
    everything: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = read_process(int(name))
            if process is not None and not process.zombie:
                everything[int(name)] = process
    members = {pid for pid, p in everything.items() if pid == root or p.session == root}
    grew = True
    while grew:
        more = {pid for pid, p in everything.items() if p.parent in members and pid not in members}
        members |= more
        grew = bool(more)
    return {pid: everything[pid] for pid in members}


class ProcessTree:
    """Samples one program's processes; all of /proc is read rarely, because of the cost.

    Attributes
    ----------
    root
        Process id of the program.
    known
        The processes of the last scan: pid -> start time.
    members
        The processes of the last sample.
    peak, cpu_seconds
        Largest memory measured, in MiB, and CPU time used.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self.known: dict[int, int] = {}
        self.members: dict[int, Process] = {}
        self._next_scan = 0.0
        self._large: list[int] = []
        self._small = 0
        #: Peak of each large process (VmHWM), and the time of the first sample with it.
        self._highs: dict[int, tuple[int, float]] = {}
        self.peak = 0.0
        self.cpu_seconds = 0.0

    def sample(self) -> Usage:
        """Measure now."""
        now = time.monotonic()
        if now >= self._next_scan:
            began = time.thread_time()
            members = related_processes(self.root)
            cost = time.thread_time() - began
            self._next_scan = now + max(1.9, cost / SCAN_SHARE)
            self.known = {pid: process.start for pid, process in members.items()}
        else:
            members = {}
            for pid, start in self.known.items():
                process = read_process(pid)
                if process is not None and process.start == start and not process.zombie:
                    members[pid] = process
        self._remember(members)
        memory = sum(process.memory for process in members.values()) / (1 << 20)
        self.peak = max(self.peak, memory)
        self.cpu_seconds = max(self.cpu_seconds, sum(p.cpu for p in members.values()))
        groups = frozenset(process.group for process in members.values())
        return Usage(memory, self.cpu_seconds, groups)

    def quick_memory(self) -> float:
        """Return MiB now: large processes are measured, small ones are as in the last sample.

        A new child of a large process is found too, if the kernel lists it.
        """
        total = self._small
        for pid in [self.root, *self._large][: MAX_PARENTS + 1]:
            for child in children(pid):
                if child not in self.known:
                    process = read_process(child)
                    if process is not None:
                        self.known[child] = process.start
                        self._large.append(child)
        for pid in self._large:
            total += resident(pid)
        memory = total / (1 << 20)
        self.peak = max(self.peak, memory)
        return memory

    def recent_peak(self) -> float:
        """Return MiB that the processes use now, or their peak in the last ``RECENT`` seconds.

        Includes each process's own peak (VmHWM), which is newer than any sample if a program
        allocates much memory at once. A peak in an earlier sample is not counted, because it did
        not end the program.
        """
        if not self.known:
            self.sample()
            self._highs.clear()
        self.quick_memory()  # Find new children.
        now = {pid: resident(pid) for pid in self.known}
        most = total = sum(now.values())
        recent = time.monotonic() - RECENT
        for pid, held in now.items():
            high = peak_resident(pid)
            mark, seen = self._highs.get(pid, (0, 0.0))
            if high > mark or seen > recent:
                most = max(most, total - held + high)
        self.peak = max(self.peak, most / (1 << 20))
        return most / (1 << 20)

    def _remember(self, members: dict[int, Process]) -> None:
        self.members = members
        by_size = sorted(members, key=lambda pid: members[pid].memory, reverse=True)
        self._large = by_size[:MAX_LARGE]
        self._small = sum(members[pid].memory for pid in by_size[MAX_LARGE:])
        now, before = time.monotonic(), self._highs
        highs = {pid: peak_resident(pid) for pid in self._large}
        self._highs = {
            pid: before[pid] if pid in before and before[pid][0] >= high else (high, now)
            for pid, high in highs.items()
        }


def kernel_memory_kills() -> int:
    """Return the number of processes of this control group killed for memory; 0 if unknown."""
    for path in _memory_event_files():
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                words = file.read(4096).split()
        except OSError:
            continue
        if "oom_kill" in words[:-1]:
            count = words[words.index("oom_kill") + 1]
            return int(count) if count.isdigit() else 0
    return 0


def _memory_event_files() -> list[str]:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            lines = [line.strip().split(":", 2) for line in file.read(1 << 16).splitlines()]
    except OSError:
        return []
    files = []
    for line in lines:
        if len(line) == 3 and line[1] == "":
            files.append(f"/sys/fs/cgroup{line[2]}/memory.events")
        elif len(line) == 3 and "memory" in line[1].split(","):
            files.append(f"/sys/fs/cgroup/memory{line[2]}/memory.oom_control")
    return files
