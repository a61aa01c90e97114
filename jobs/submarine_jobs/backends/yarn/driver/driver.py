"""skein's driver: one JVM a host, user and cluster configuration, shared by all kernels.

Whoever needs it first starts it, detached, under a file lock; everybody finds it again through
``driver.json`` (pid, start time, port), which is believed only after a ping. It exits by itself
after some hours without use. Knows nothing of jobs; how a process is started is ``driverprocess``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.driver.classpath import client_classpath, java_home, yarn_command
from submarine_jobs.backends.yarn.driver.process import (
    START_SECONDS,
    Running,
    failed,
    launch,
    read_running,
    stop_directory,
)
from submarine_jobs.backends.yarn.driver.skein_calls import (
    Channel,
    DriverChannel,
    DriverUnreachableError,
)
from submarine_jobs.config import make_private
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile

T = TypeVar("T")
PING_SECONDS = 5.0


class Driver:
    """The driver of one profile; finds, starts and restarts it as needed.

    Parameters
    ----------
    profile
        Its state_dir holds the driver's directory, mode 0700.
    conf
        The cluster's client configuration.
    """

    def __init__(self, profile: Profile, conf: HadoopConf) -> None:
        self._profile = profile
        self._conf = conf
        self._lock = threading.Lock()
        self._channel: tuple[Running, DriverChannel] | None = None

    @property
    def directory(self) -> Path:
        """Where this driver keeps its state; another one for every configuration."""
        java = str(self._profile.java_home or os.environ.get("JAVA_HOME", ""))
        user = self._profile.user or os.environ.get("HADOOP_USER_NAME", "")
        name = self._conf.fingerprint(str(self._conf.directory), java, user)
        return self._profile.state_dir / "driver" / name

    def call(self, work: Callable[[Channel], T], *, start: bool = True) -> T:
        """Run ``work`` on a live driver.

        A driver that is found dead at once is replaced; whether ``work`` may be repeated after a
        connection broke is for the caller to decide: DriverUnreachableError reaches it.

        Raises
        ------
        ClusterError
            If no driver can be started within its limit.
        """
        return work(self.channel(start=start))

    def channel(self, *, start: bool = True) -> Channel:
        """A connection to a driver that has just answered a ping."""
        with self._lock:
            found = self._find()
            if found is None:
                if not start:
                    raise DriverUnreachableError("No YARN driver runs.")
                found = self._start()
            with contextlib.suppress(OSError):
                os.utime(self.directory / "last-use")
            return found

    def java_and_classpath(self) -> tuple[Path, list[str]]:
        """The Java and Hadoop's client class path that the driver runs on."""
        java = java_home(self._profile)
        command = yarn_command(self._profile, self._conf.directory)
        make_private(self.directory)
        cache = self.directory / "classpath"
        return java, client_classpath(command, java, self._conf.directory, cache)

    def running(self) -> Running | None:
        """The live driver's process, without pinging it; None if there is none."""
        return read_running(self.directory)

    def close(self) -> None:
        """Drop this process's connection; the driver stays."""
        with self._lock:
            self._disconnect()

    def stop(self) -> bool:
        """End the driver; True if one was running."""
        with self._lock:
            self._disconnect()
            return stop_directory(self.directory)

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel[1].close()
            self._channel = None

    def _find(self) -> DriverChannel | None:
        running = read_running(self.directory)
        if running is None:
            self._disconnect()
            return None
        if self._channel is not None and self._channel[0] != running:
            self._disconnect()
        try:
            if self._channel is None:
                pem = [(self.directory / n).read_bytes() for n in ("skein.crt", "skein.pem")]
                self._channel = (running, DriverChannel(running.port, pem[0], pem[1]))
            self._channel[1].ping(PING_SECONDS)
        except (OSError, ClusterError):
            self._disconnect()
            return None
        return self._channel[1]

    def _start(self) -> DriverChannel:
        directory = self.directory
        make_private(directory)
        directory.chmod(0o700)
        deadline = time.monotonic() + START_SECONDS
        with _file_lock(directory / "lock", deadline):
            found = self._find()
            if found is not None:  # somebody else was first
                return found
            stop_directory(directory)
            self._stop_others(directory)
            launch(self._profile, self._conf, directory, deadline)
            found = self._find()
            # A fresh JVM on a busy machine may take longer over its first answer than a ping.
            while found is None and self.running() and time.monotonic() < deadline:
                time.sleep(0.2)
                found = self._find()
        if found is None:
            raise failed(directory, "it does not answer")
        return found

    def _stop_others(self, directory: Path) -> None:
        """End the drivers of earlier versions of the same configuration directory."""
        for other in directory.parent.iterdir():
            running = read_running(other)
            if other != directory and running and running.conf_dir == str(self._conf.directory):
                stop_directory(other)


def stop_driver(profile: Profile) -> int:
    """End every driver of this state directory; how many were running."""
    root = profile.state_dir / "driver"
    if not root.is_dir():
        return 0
    return sum(stop_directory(directory) for directory in root.iterdir())


@contextlib.contextmanager
def _file_lock(path: Path, deadline: float) -> Iterator[None]:
    """Hold ``path`` against other processes; gives up at ``deadline``."""
    with path.open("w") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ClusterError(
                        "Another process has been starting the YARN driver for too long.",
                        f"End whoever holds {path}.",
                    ) from None
                time.sleep(0.1)
        yield
