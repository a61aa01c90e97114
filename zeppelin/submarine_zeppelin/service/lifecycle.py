"""Shut down this process and its child processes, at the latest with Zeppelin's server.

Zeppelin stops an interpreter by ``shutdown`` or a signal. If the server is killed, neither happens,
so this process watches its parent. Jobs are not in the process group and continue.
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
#: Seconds in which interpreters release their resources before child processes are killed.
CLOSE_TIMEOUT = 2.0
#: Setting: hours to wait for the restart of a server that recovers its interpreters.
RECOVERY_HOURS = "submarine.recovery.hours"
_DEFAULT_HOURS = 24.0
_STORAGE = "zeppelin.recovery.storage.class"
_NO_STORAGE = "NullRecoveryStorage"
#: Seconds between two checks whether the server has restarted.
POLL_INTERVAL = 5.0


def become_group_leader() -> None:
    """Become the leader of a process group, so that child processes can be terminated."""
    with contextlib.suppress(OSError):  # a session leader already leads a group
        os.setpgid(0, 0)


class ProcessShutdown:
    """Shuts down this process, once.

    Parameters
    ----------
    close
        Releases the resources of the process. It may block and has ``CLOSE_TIMEOUT`` seconds.
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._once = threading.Lock()
        self._recovers = False
        self._hours = _DEFAULT_HOURS

    def configure(self, properties: Mapping[str, str]) -> None:
        """Set whether the server recovers this process, and how long to wait for it."""
        if _STORAGE in properties:
            storage = properties[_STORAGE] or _NO_STORAGE
            self._recovers = not storage.endswith(_NO_STORAGE)
        if properties.get(RECOVERY_HOURS):
            try:
                self._hours = max(0.0, float(properties[RECOVERY_HOURS]))
            except ValueError:
                log.warning("%s is not a number; using %s hours", RECOVERY_HOURS, self._hours)

    def request(self, reason: str, code: int = 0) -> None:
        """Shut down in another thread, and return at once."""
        threading.Thread(target=self.run, args=(reason, code), daemon=True, name="shutdown").start()

    def run(self, reason: str, code: int = 0) -> None:
        """Shut down and exit."""
        if not self._once.acquire(blocking=False):
            return
        log.info("shutting down: %s", reason)
        closing = threading.Thread(target=self._close, daemon=True, name="closing")
        closing.start()
        closing.join(CLOSE_TIMEOUT)
        terminate_group()
        logging.shutdown()
        os._exit(code)

    def on_signals(self) -> None:
        """Shut down on signals. Call this in the main thread, and then ``wait``."""
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda got, _: self.request(signal.strsignal(got) or "a signal"))

    def wait(self) -> None:
        """Wait for signals, forever.

        ``signal.pause`` would miss a signal that arrives just before it.
        """
        while True:
            os.read(self._woken, 64)

    def watch(self, parent: int, address: Callable[[], tuple[str, int]]) -> None:
        """Shut down when the parent ends; with recovery, if no server restarts in time.

        Parameters
        ----------
        address
            Returns the current address of the server.
        """
        threading.Thread(
            target=self._watch, args=(parent, address), daemon=True, name="watch"
        ).start()

    def _watch(self, parent: int, address: Callable[[], tuple[str, int]]) -> None:
        _await_end(parent)
        log.warning("Zeppelin's server, process %s, has ended", parent)
        last_answer = time.monotonic()
        while self._recovers and time.monotonic() < last_answer + self._hours * 3600:
            time.sleep(POLL_INTERVAL)
            if _answers(*address()):
                last_answer = time.monotonic()
        self.run("Zeppelin's server has ended")


def _await_end(pid: int) -> None:
    """Return when the parent process has ended."""
    if os.getppid() != pid:
        return
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # an old kernel, or the process has just ended
        while os.getppid() == pid:
            time.sleep(0.5)
        return
    try:
        if os.getppid() != pid:  # the parent has ended, and another process may have its pid
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll()
    finally:
        os.close(descriptor)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=POLL_INTERVAL):
            return True
    except OSError:
        return False


def terminate_group() -> None:
    """Terminate the other processes of this group; kill them after half a second."""
    own = os.getpid()
    if os.getpgid(0) != own:
        return
    for number, timeout in ((signal.SIGTERM, 0.5), (signal.SIGKILL, 0.0)):
        members = _group(own)
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + timeout
        while members and time.monotonic() < deadline:
            time.sleep(0.02)
            members = _group(own)


def _group(group: int) -> list[int]:
    """Return the running processes of a group without its leader."""
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, of = (
                (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            )
        except (OSError, ValueError):
            continue
        if int(of) == group and state not in "ZX" and int(entry.name) != group:
            members.append(int(entry.name))
    return members
