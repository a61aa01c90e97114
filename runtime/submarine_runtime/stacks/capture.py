"""Take the stacks of a program's processes, without a debugger.

The launcher registers Python's ``faulthandler`` for a free real-time signal and a file, named
``PROCESS-PID-SIGNAL-DESCRIPTOR`` in ``stacks/`` of the task's directory. A process gets the signal
only while it handles it and has this file open: otherwise the signal would end the process, or the
text would go to another file. Of other processes only the state in the kernel is known.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any, Mapping, NamedTuple, Sequence

from submarine_runtime.processes import related_processes
from submarine_runtime.protocol import MAP_PATH, SourceMap
from submarine_runtime.translation import _

#: Name of the directory of the launcher's files.
DIRECTORY = "stacks"
#: Seconds for the answer of a process, and seconds without more text after which it is complete.
ANSWER_SECONDS = 2.0
QUIET_SECONDS = 0.1
MAX_TEXT = 1 << 18
MAX_FRAMES = 40
MAX_THREADS = 16
MAX_PROCESSES = 64
#: Processes without the launcher that are described.
MAX_OTHERS = 8
_NAME = re.compile(r"(\d{1,6})-(\d{1,9})-(\d{1,3})-(\d{1,9})\Z")
_THREAD = re.compile(r"(Current thread|Thread|Stack)\b.*\(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')
#: States of ``/proc/PID/stat``.
_STATES = {
    "D": "waits for a device or a file system",
    "R": "runs",
    "S": "sleeps",
    "T": "is stopped by a signal",
    "t": "is stopped by a debugger",
    "Z": "has ended",
}
#: Functions of the kernel in which a thread waits for another process over a connection.
_CONNECTIONS = (
    *("wait_woken", "sk_wait", "inet_", "unix_stream", "tcp_", "poll_schedule", "ep_poll"),
    *("do_epoll", "do_poll", "do_select"),
)


class RankProcess(NamedTuple):
    """A process of the program that the launcher runs; ``number`` counts within the container."""

    number: int
    pid: int
    signal: int
    descriptor: int
    path: str


def rank_processes(directory: str, members: Sequence[int]) -> list[RankProcess]:
    """Return the living processes that the launcher runs, by number.

    Parameters
    ----------
    directory
        The task's directory.
    members
        Process ids of the program.
    """
    folder = os.path.join(directory, DIRECTORY)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = {}
    for name in names:
        match = _NAME.match(name)
        if match and int(match[2]) in members:
            number, pid, signal, descriptor = (int(group) for group in match.groups())
            found[number] = RankProcess(number, pid, signal, descriptor, f"{folder}/{name}")
    return [found[number] for number in sorted(found)[:MAX_PROCESSES]]


def take(root: int, directory: str, program: str) -> list[dict[str, Any]]:
    """Return one entry for each process of the program ``root``.

    Parameters
    ----------
    directory, program
        The task's directory, and that of the bundle.

    Returns
    -------
    list of dict
        ``process`` (its number), ``pid``, ``state`` (of ``/proc``), ``connected`` (it waits for a
        connection), ``frames`` of the main thread (innermost first: ``file line function own code
        cell``), ``threads`` (frames of the others), and ``note`` without frames.
    """
    members = related_processes(root)
    processes = rank_processes(directory, list(members))
    if not processes:
        return _without_launcher(root, {pid: one.parent for pid, one in members.items()})
    # The state comes first: a process that handles the signal does not wait.
    states = {one.pid: _entry(one.number, one.pid) for one in processes}
    lengths = {one.pid: _signal(one) for one in processes}
    deadline = time.monotonic() + ANSWER_SECONDS
    cells = _source_map(program)
    entries = []
    for one in processes:
        entry = states[one.pid]
        begin = lengths[one.pid]
        text = "" if begin is None else _answer(one.path, begin, deadline)
        threads = parse_dump(text)
        if threads:
            named = [_name_frames(frames, program, directory, cells) for frames in threads]
            # The main thread is the oldest one, which faulthandler writes last.
            entry.update(frames=named[-1], threads=named[:-1][:MAX_THREADS])
        else:
            why = (
                _("it does not answer") if begin is not None else _("its code replaced the signal")
            )
            entry["note"] = _("no stack of process {pid}: {why}; it {state}").format(
                pid=one.pid, why=why, state=_state(entry)
            )
        entries.append(entry)
    return entries


def parse_dump(text: str) -> list[list[tuple[str, int, str]]]:
    """Return the threads in a text of ``faulthandler``: file, line and function, innermost first.

    The main thread is the last one; of more than a hundred threads, the one that handled the
    signal.
    """
    threads: list[list[tuple[str, int, str]]] = []
    current = -1
    for line in text.splitlines():
        head = _THREAD.match(line)
        if head:
            threads.append([])
            if head[1] != "Thread":
                current = len(threads) - 1
        elif line == "..." and current >= 0:  # Threads are left out: the oldest ones.
            threads.append(threads.pop(current))
        elif threads and (frame := _FRAME.match(line)):
            number = int(frame[2]) if frame[2].isdigit() else 0
            threads[-1].append((frame[1], number, frame[3]))
    return threads


def _signal(process: RankProcess) -> int | None:
    """Send the signal; return the length of the file before, None if the process cannot take it."""
    try:
        opened = os.readlink(f"/proc/{process.pid}/fd/{process.descriptor}")
        with open(f"/proc/{process.pid}/status", encoding="utf-8", errors="replace") as file:
            caught = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
        handled = int(caught, 16) >> (process.signal - 1) & 1
        if not handled or opened != os.path.realpath(process.path):
            return None
        length = os.stat(process.path).st_size
        if length > MAX_TEXT:
            os.truncate(process.path, 0)  # The process appends.
            length = 0
        os.kill(process.pid, process.signal)
    except (OSError, StopIteration, ValueError):
        return None
    return length


def _answer(path: str, begin: int, deadline: float) -> str:
    """Return what was appended to a file, when no more comes or the time is over."""
    size, changed = begin, time.monotonic()
    while True:
        now = time.monotonic()
        try:
            length = os.stat(path).st_size
        except OSError:
            return ""
        if length != size:
            size, changed = length, now
        if now >= deadline or (size > begin and now - changed >= QUIET_SECONDS):
            break
        time.sleep(0.02)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            file.seek(begin)
            return file.read(MAX_TEXT)
    except OSError:
        return ""


def _source_map(program: str) -> SourceMap:
    try:
        with open(os.path.join(program, MAP_PATH), "rb") as file:
            return SourceMap.from_bytes(file.read(1 << 24))
    except (OSError, ValueError):
        return SourceMap({})


def _name_frames(
    frames: Sequence[tuple[str, int, str]], program: str, directory: str, cells: SourceMap
) -> list[dict[str, Any]]:
    """Return the frames with paths relative to the bundle, and the cells of its files."""
    root = os.path.realpath(program) + os.sep
    launcher = os.path.join(os.path.realpath(directory), "launch") + os.sep
    named: list[dict[str, Any]] = []
    for path, line, function in frames[:MAX_FRAMES]:
        whole = os.path.realpath(os.path.join(program, path))
        if whole.startswith(launcher):
            continue
        frame: dict[str, Any] = {"file": path[-300:], "line": line, "function": function[:200]}
        if whole.startswith(root):
            frame.update(file=whole[len(root) :], own=True, code=_code(whole, line))
            position = cells.lookup(frame["file"], line)
            if position is not None:
                frame["cell"] = _("cell {label} line {line}").format(
                    label=position.label.strip("[]"), line=position.line
                )
        named.append(frame)
    return named


def _code(path: str, number: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for count, line in enumerate(file, 1):
                if count == number:
                    return line.strip()[:200]
    except OSError:
        pass
    return ""


def _entry(number: int, pid: int) -> dict[str, Any]:
    state, where = _kernel_state(pid)
    connected = where.startswith(_CONNECTIONS)
    return {"process": number, "pid": pid, "state": state, "connected": connected, "wait": where}


def _kernel_state(pid: int) -> tuple[str, str]:
    """Return the state of a process's main thread, and the kernel's function that it waits in."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read(4096).rpartition(")")[2].split()[0]
        with open(f"/proc/{pid}/wchan", encoding="utf-8", errors="replace") as file:
            where = file.read(100).strip()
    except (OSError, IndexError):
        return "", ""
    return state, "" if where == "0" else where


def _state(entry: Mapping[str, Any]) -> str:
    words = _STATES.get(entry["state"], entry["state"] or "?")
    return f"{words} ({entry['wait']})" if entry["wait"] else words


def _without_launcher(root: int, parents: Mapping[int, int]) -> list[dict[str, Any]]:
    """Describe the processes without children, which do the work."""
    leaves = sorted(set(parents) - {parent for pid, parent in parents.items() if pid != root})
    entry = _entry(0, root)
    notes = []
    for pid in leaves[:MAX_OTHERS]:
        own = _entry(0, pid)
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read(100).strip()
        except OSError:
            continue
        notes.append(f"{name} ({pid}) {_state(own)}")
        entry.update(pid=pid, state=own["state"], connected=own["connected"], wait=own["wait"])
    entry["note"] = _("no Python stack, because Submarine's launcher did not start it: {}").format(
        ", ".join(notes) or _("it has ended")
    )
    return [entry]
