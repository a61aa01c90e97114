"""skein's driver: one JVM a host, user and cluster configuration, shared by all kernels.

The first process that needs it starts it, detached, under a file lock. Other processes find it in
``driver.json`` (pid, start time, port) and verify it with a ping. It exits after some hours without
use. ``process`` starts and stops the JVM.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from submarine_jobs import concurrency
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
from submarine_jobs.backends.yarn.driver.tickets import driver_tickets, ticket_source
from submarine_jobs.config import make_private
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile
from submarine_runtime.translation import _
from submarine_runtime.yarn import GPU

T = TypeVar("T")
PING_SECONDS = 5.0


class Driver:
    """The driver of one profile; finds, starts and restarts it as needed.

    Parameters
    ----------
    profile
        Its state_dir contains the directory of the driver, mode 0700.
    conf
        The client configuration of the cluster.
    """

    def __init__(self, profile: Profile, conf: HadoopConf) -> None:
        self._profile = profile
        self._conf = conf
        self._lock = threading.Lock()
        self._channel: tuple[Running, DriverChannel] | None = None

    @property
    def directory(self) -> Path:
        """State directory of the driver; each configuration has its own."""
        java = str(self._profile.java_home or os.environ.get("JAVA_HOME", ""))
        user = self._profile.user or os.environ.get("HADOOP_USER_NAME", "")
        words = [str(self._conf.directory), java, user]
        if self._conf.kerberos:
            words.append(ticket_source(self._profile))
        # The driver's classes name GPUs as the cluster does.
        gpu_resource = self._profile.settings.get("gpu_resource", GPU)
        words += [gpu_resource] if gpu_resource != GPU else []
        name = self._conf.fingerprint(*words)
        return self._profile.state_dir / "driver" / name

    def call(self, work: Callable[[Channel], T], *, start: bool = True) -> T:
        """Run ``work`` on a running driver.

        A driver that is not running is replaced. If a connection breaks, DriverUnreachableError is
        raised, because only the caller can decide whether to repeat ``work``.

        Raises
        ------
        ClusterError
            If no driver can be started in time.
        """
        return work(self.channel(start=start))

    def channel(self, *, start: bool = True) -> Channel:
        """Return a connection to a driver that has answered a ping."""
        with self._lock:
            found = self._find()
            if found is None:
                if not start:
                    raise DriverUnreachableError(_("No YARN driver runs."))
                found = self._start()
            else:
                driver_tickets(self._profile, self._conf, self.directory).refresh()
            with contextlib.suppress(OSError):
                os.utime(self.directory / "last-use")
            return found

    def java_and_classpath(self) -> tuple[Path, list[str]]:
        """Return Java and the Hadoop client class path of the driver."""
        java = java_home(self._profile)
        command = yarn_command(self._profile, self._conf.directory)
        make_private(self.directory)
        cache = self.directory / "classpath"
        return java, client_classpath(command, java, self._conf.directory, cache)

    def running(self) -> Running | None:
        """Return the process of the running driver, without a ping; None if there is none."""
        return read_running(self.directory)

    def close(self) -> None:
        """Close the connection of this process; the driver continues to run."""
        with self._lock:
            self._disconnect()

    def stop(self) -> bool:
        """Stop the driver; return whether one was running."""
        with self._lock:
            self._disconnect()
            return stop_directory(self.directory)

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._channel[1].close()
            self._channel = None

    def _find(self) -> DriverChannel | None:
        running = read_running(self.directory)
        tickets = driver_tickets(self._profile, self._conf, self.directory)
        if running is None or tickets.newer_than(self.directory / "driver.json"):
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
            if found is not None:  # another process was first
                return found
            stop_directory(directory)
            self._stop_others(directory)
            launch(self._profile, self._conf, directory, deadline)
            found = self._find()
            # On a busy machine, the first response of a new JVM may exceed the timeout of a ping.
            while found is None and self.running() and time.monotonic() < deadline:
                time.sleep(0.2)
                found = self._find()
        if found is None:
            raise failed(directory, _("it does not answer"))
        return found

    def _stop_others(self, directory: Path) -> None:
        """Stop the drivers of earlier versions of the same configuration directory."""
        for other in directory.parent.iterdir():
            running = read_running(other)
            if other != directory and running and running.conf_dir == str(self._conf.directory):
                stop_directory(other)


def stop_driver(profile: Profile) -> int:
    """Stop all drivers of this state directory; return how many were running."""
    root = profile.state_dir / "driver"
    if not root.is_dir():
        return 0
    return sum(stop_directory(directory) for directory in root.iterdir())


@contextlib.contextmanager
def _file_lock(path: Path, deadline: float) -> Iterator[None]:
    """Lock ``path`` against other processes; raise at ``deadline``."""
    lock = concurrency.file_lock(path)
    try:
        lock.acquire(timeout=max(0.0, deadline - time.monotonic()), poll_interval=0.1)
    except TimeoutError:
        raise ClusterError(
            _("Another process has been starting the YARN driver for too long."),
            _("End the process that holds {path}.").format(path=path),
        ) from None
    try:
        yield
    finally:
        lock.release()
