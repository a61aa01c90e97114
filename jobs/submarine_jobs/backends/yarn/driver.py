"""skein's driver: one JVM a host, user and cluster configuration, shared by all kernels.

Whoever needs it first starts it, detached, under a file lock; everybody finds it again through
``driver.json`` (pid, start time, port), which is believed only after a ping. It exits by itself
after ``IDLE_HOURS`` without use, because a small shell loop, which is all that holds its standard
input, then ends. Knows nothing of jobs.

The JVM's environment holds skein's TLS pair, because skein's driver reads it nowhere else; only
the same user (and root) can see a process's environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from submarine_jobs.backends.yarn.classpath import client_classpath, java_home, yarn_command
from submarine_jobs.backends.yarn.driverconf import write_overlay
from submarine_jobs.backends.yarn.hadoopconf import HadoopConf
from submarine_jobs.backends.yarn.skein_calls import (
    DriverChannel,
    DriverUnreachableError,
    new_credentials,
    skein_jar,
)
from submarine_jobs.errors import ClusterError
from submarine_jobs.profile import Profile

T = TypeVar("T")
IDLE_HOURS = 8
START_SECONDS = 60.0
PING_SECONDS = 5.0
JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xms16m",
    "-Xmx256m",
    "-Xss512k",
)
#: Writes a line a minute into the driver's standard input while ``$1`` was touched within ``$2``
#: minutes; a dead driver ends it by SIGPIPE. Prints the JVM's pid.
_LAUNCH = """\
stamp=$1 minutes=$2 log=$3; shift 3
keep() { while [ -n "$(find "$stamp" -mmin "-$minutes" 2>/dev/null)" ]; do echo; sleep 60; done; }
keep 2>/dev/null </dev/null | "$@" >"$log" 2>&1 &
echo $!
"""


@dataclass(frozen=True)
class Running:
    """What ``driver.json`` holds; ``started`` is the process's own start time."""

    pid: int
    started: float
    port: int
    conf_dir: str


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

    def call(self, work: Callable[[DriverChannel], T], *, start: bool = True) -> T:
        """Run ``work`` on a live driver.

        A driver that is found dead at once is replaced; whether ``work`` may be repeated after a
        connection broke is for the caller to decide: DriverUnreachableError reaches it.

        Raises
        ------
        ClusterError
            If no driver can be started within its limit.
        """
        return work(self.channel(start=start))

    def channel(self, *, start: bool = True) -> DriverChannel:
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
        cache = self.directory / "classpath"
        return java, client_classpath(command, java, self._conf.directory, cache)

    def running(self) -> Running | None:
        """The live driver's process, without pinging it; None if there is none."""
        return _read(self.directory)

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
        running = _read(self.directory)
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
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
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
        if found is None:
            raise _failed(directory, "it does not answer")
        return found

    def _stop_others(self, directory: Path) -> None:
        """End the drivers of earlier versions of the same configuration directory."""
        for other in directory.parent.iterdir():
            running = _read(other)
            if other != directory and running and running.conf_dir == str(self._conf.directory):
                stop_directory(other)


def launch(profile: Profile, conf: HadoopConf, directory: Path, deadline: float) -> Running:
    """Start a JVM, detached from this process, and write ``driver.json`` once it has a port."""
    java = java_home(profile)
    command = yarn_command(profile, conf.directory)
    entries = client_classpath(command, java, conf.directory, directory / "classpath")
    overlay = write_overlay(conf, directory / "conf", profile.timeout)
    certificate, key = new_credentials()
    for name, data in (("skein.crt", certificate), ("skein.pem", key)):
        _write_private(directory / name, data)
    empty = _empty_jar(directory)
    (directory / "last-use").touch()
    with socket.create_server(("127.0.0.1", 0), backlog=1) as callback:
        env = dict(os.environ)
        env.update(
            SKEIN_CERTIFICATE=certificate.decode(),
            SKEIN_KEY=key.decode(),
            SKEIN_CALLBACK_PORT=str(callback.getsockname()[1]),
            CLASSPATH=":".join([str(overlay), skein_jar(), *entries]),
            JAVA_HOME=str(java),
            HADOOP_CONF_DIR=str(conf.directory),
        )
        if profile.user:
            env["HADOOP_USER_NAME"] = profile.user
        for noise in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
            env.pop(noise, None)
        options = profile.settings.get("driver_java_options", "").split() or list(JVM_OPTIONS)
        arguments = [str(java / "bin" / "java"), "-Dskein.log.level=INFO", *options]
        arguments += ["com.anaconda.skein.Driver", "--jar", str(empty)]
        pid = _detach(arguments, env, directory)
        port = _wait_for_port(callback, pid, directory, deadline)
    running = Running(pid, _start_time(pid) or 0.0, port, str(conf.directory))
    _write_private(directory / "driver.json", json.dumps(asdict(running)).encode())
    return running


def stop_driver(profile: Profile) -> int:
    """End every driver of this state directory; how many were running."""
    root = profile.state_dir / "driver"
    if not root.is_dir():
        return 0
    return sum(stop_directory(directory) for directory in root.iterdir())


def stop_directory(directory: Path) -> bool:
    """End the driver of ``directory``, by its own pid only; True if there was one."""
    running = _read(directory)
    with contextlib.suppress(OSError):
        (directory / "driver.json").unlink()
    if running is None:
        return False
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(running.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except psutil.TimeoutExpired:
            process.kill()
    return True


def _read(directory: Path) -> Running | None:
    """The driver of ``directory`` if that very process is alive."""
    try:
        running = Running(**json.loads((directory / "driver.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    started = _start_time(running.pid)
    if started is None or abs(started - running.started) > 1.0:
        return None
    return running


def _start_time(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None


def _detach(arguments: list[str], env: dict[str, str], directory: Path) -> int:
    minutes = str(IDLE_HOURS * 60)
    launched = subprocess.run(
        ["/bin/sh", "-c", _LAUNCH, "sh", str(directory / "last-use"), minutes,
         str(directory / "driver.log"), *arguments],
        env=env,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        timeout=10,
        check=True,
    )  # fmt: skip
    return int(launched.stdout)


def _wait_for_port(callback: socket.socket, pid: int, directory: Path, deadline: float) -> int:
    """The port that the driver reports; skein has it connect back to us."""
    while time.monotonic() < deadline:
        callback.settimeout(0.2)
        try:
            connection, _ = callback.accept()
        except TimeoutError:
            if _start_time(pid) is None:
                raise _failed(directory, "its JVM ended") from None
            continue
        with connection:
            connection.settimeout(2.0)
            data = connection.recv(4, socket.MSG_WAITALL)
        if len(data) == 4:
            return int(struct.unpack("!i", data)[0])
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    raise _failed(directory, f"it was not ready within {START_SECONDS:g} s")


def _failed(directory: Path, what: str) -> ClusterError:
    from submarine_jobs.backends.yarn.driverlog import start_error

    return start_error(directory / "driver.log", what)


def _write_private(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".tmp-{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    temporary.replace(path)


def _empty_jar(directory: Path) -> Path:
    """A jar with nothing in it: skein uploads the jar that it is given with every submit.

    Masters get skein's real jar from the job root's cache instead (``shipped``).
    """
    import zipfile

    path = directory / "nothing.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
    return path


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
