"""Collect the facts of a program that has ended, for ``ending``."""

from __future__ import annotations

import os

from submarine_runtime.agent.program.ending import Facts
from submarine_runtime.agent.program.failure import (
    last_line,
    load_failure,
    name_cells,
    parse_stderr,
)
from submarine_runtime.agent.program.monitor import Watch
from submarine_runtime.storage import Scratch

#: A disk with less free space, in bytes, counts as full.
DISK_FULL = 1 << 16
#: Number of bytes at the end of stderr that are searched for the message of a taken port.
PORT_TAIL = 1 << 14


def gather(
    scratch: Scratch,
    stderr: str,
    code: int,
    *,
    shell: bool,
    watch: Watch,
    port_words: tuple[str, ...] = (),
) -> Facts:
    """Return the facts of a program that ended with the status ``code``."""
    facts = Facts(
        code,
        shell,
        watch.stopped,
        watch.stopped_detail,
        peak=watch.tree.peak,
        limit=watch.limit,
    )
    if not shell:
        facts.started = os.path.exists(os.path.join(scratch.launch, "started"))
        loaded = load_failure(scratch.path("failure.json"))
        if loaded is not None:
            facts.failure, facts.kind = loaded
    if code != 0:
        facts.last_line = last_line(stderr)
        facts.disk_full = _disk_full(scratch.root, scratch.logs)
        facts.port_taken = _said(stderr, port_words)
        if facts.failure is None:
            facts.failure = parse_stderr(stderr)
    if facts.failure is not None:
        facts.failure = name_cells(facts.failure, scratch.program)
    return facts


def _said(path: str, words: tuple[str, ...]) -> str:
    """Return the last line of the end of a log that contains one of some words; empty: none."""
    if not words:
        return ""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - PORT_TAIL))
            lines = file.read(PORT_TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = (line for line in reversed(lines) if any(word in line for word in words))
    return next(found, "").strip()[:300]


def _disk_full(*paths: str) -> bool:
    for path in paths:
        try:
            info = os.statvfs(path)
        except OSError:
            continue
        if info.f_bavail * info.f_frsize < DISK_FULL or (info.f_files and not info.f_favail):
            return True
    return False
