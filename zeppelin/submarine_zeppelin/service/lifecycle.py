"""The end of this process: with Zeppelin's server, and with all that it started itself.

Zeppelin ends an interpreter by ``shutdown`` or a signal; where its server is killed nobody does,
so that the parent is watched. Jobs are not ours to end: they are in no process group of ours.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

log = logging.getLogger(__name__)
#: Seconds in which interpreters close what they hold, before it is killed.
TO_CLOSE = 2.0
#: Hours that a process waits for a server which recovers its interpreters.
RECOVERY_HOURS = "submarine.recovery.hours"
_HOURS = 24.0
_STORAGE = "zeppelin.recovery.storage.class"
_NO_STORAGE = "NullRecoveryStorage"
#: Seconds between two looks whether the server has come back.
LOOK = 5.0


def own_group() -> None:
    """Be the leader of a process group, so that all of it can be ended."""
    with contextlib.suppress(OSError):  # of a session's leader, which has one already
        os.setpgid(0, 0)


class Ending:
    """How this process ends, once.

    Parameters
    ----------
    close
        Closes what the process holds; may block, and is given ``TO_CLOSE`` seconds.
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._once = threading.Lock()
        self._recovers = False
        self._hours = _HOURS

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take note whether the server will come back for us, and how long to wait for it."""
        if _STORAGE in properties:
            storage = properties[_STORAGE] or _NO_STORAGE
            self._recovers = not storage.endswith(_NO_STORAGE)
        if properties.get(RECOVERY_HOURS):
            try:
                self._hours = max(0.0, float(properties[RECOVERY_HOURS]))
            except ValueError:
                log.warning("%s is no number: %s hours it is", RECOVERY_HOURS, self._hours)

    def request(self, why: str, code: int = 0) -> None:
        """End the process soon, from any thread; returns at once."""
        threading.Thread(target=self.end, args=(why, code), daemon=True, name="ending").start()

    def end(self, why: str, code: int = 0) -> None:
        """End the process now."""
        if not self._once.acquire(blocking=False):
            return
        log.info("ending: %s", why)
        closing = threading.Thread(target=self._close, daemon=True, name="closing")
        closing.start()
        closing.join(TO_CLOSE)
        end_group()
        logging.shutdown()
        os._exit(code)

    def on_signals(self) -> None:
        """End when asked by a signal; in the main thread, which calls ``wait`` then."""
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda got, _: self.request(signal.strsignal(got) or "a signal"))

    def wait(self) -> None:
        """Wait for signals for good.

        Not by ``signal.pause``: one that comes just before it would be noticed by the next only.
        """
        while True:
            os.read(self._woken, 64)

    def watch(self, parent: int, address: Callable[[], tuple[str, int]]) -> None:
        """End when the parent has; under recovery, when no server came back in good time.

        Parameters
        ----------
        address
            Where the server listens that we belong to now.
        """
        threading.Thread(
            target=self._watch, args=(parent, address), daemon=True, name="watch"
        ).start()

    def _watch(self, parent: int, address: Callable[[], tuple[str, int]]) -> None:
        _await_end(parent)
        log.warning("Zeppelin's server, process %s, has ended", parent)
        seen = time.monotonic()
        while self._recovers and time.monotonic() < seen + self._hours * 3600:
            time.sleep(LOOK)
            if _answers(*address()):
                seen = time.monotonic()
        self.end("Zeppelin's server has ended")


def _await_end(pid: int) -> None:
    """Return when a process that was our parent has ended."""
    if os.getppid() != pid:
        return
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # an old kernel, or ended just now
        while os.getppid() == pid:
            time.sleep(0.5)
        return
    try:
        if os.getppid() != pid:  # it ended before, and its number may be another's
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll()
    finally:
        os.close(descriptor)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=LOOK):
            return True
    except OSError:
        return False


def end_group() -> None:
    """End the other processes of our group: asked first, killed after half a second."""
    own = os.getpid()
    if os.getpgid(0) != own:
        return
    for number, patience in ((signal.SIGTERM, 0.5), (signal.SIGKILL, 0.0)):
        members = _group(own)
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + patience
        while members and time.monotonic() < until:
            time.sleep(0.02)
            members = _group(own)


def _group(group: int) -> list[int]:
    """The living processes of a group, its leader left out."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, of = (
                (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            )
        except (OSError, ValueError):
            continue
        if int(of) == group and state not in "ZX" and int(entry.name) != group:
            found.append(int(entry.name))
    return found
