"""The process of skein's driver: start it detached, find it by pid and start time, stop it.

The JVM is independent of the process that starts it: it has its own session and no inherited pipes.
A small shell loop keeps its standard input open until it has been unused for
``driver_idle_minutes``.

The environment of the JVM contains skein's TLS key pair, because the driver reads it only from
there. The environment of a process is visible only to the same user and root.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from submarine_jobs.backends.yarn.cluster import HadoopConf, read_properties, write_properties
from submarine_jobs.backends.yarn.driver.classpath import client_classpath, java_home, yarn_command
from submarine_jobs.backends.yarn.driver.master_jar import RESOURCE_CLASS, resource_class
from submarine_jobs.backends.yarn.driver.skein_calls import new_credentials, skein_jar
from submarine_jobs.backends.yarn.driver.start_log import start_error
from submarine_jobs.backends.yarn.driver.tickets import TICKET_COPY, driver_tickets
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile
from submarine_runtime.files import replace_file
from submarine_runtime.kerberos import TOKEN_FILE_VARIABLE
from submarine_runtime.network import UnknownPeerError, listener_uids, peer_uid
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.translation import _
from submarine_runtime.yarn import GPU


def write_overlay(conf: HadoopConf, directory: Path, timeout: float) -> Path:
    """Write the cluster's files with changed values to ``directory``, and return it.

    Hadoop clients wait up to fifteen minutes for a ResourceManager that is down. In a notebook the
    error must appear within ``timeout``, in which a standby may become the active one. Application
    masters do not use these files.
    """
    directory.mkdir(exist_ok=True, mode=0o700)
    wait = int(max(timeout - 5.0, 3.0) * 1000)
    give_up, retry, hdfs_retry = str(wait), 500, 1000
    changes = {
        "core-site.xml": {
            **conf.default_changes,
            "ipc.client.connect.max.retries": "3",
            "ipc.client.connect.retry.interval": "300",
            "ipc.client.connect.max.retries.on.timeouts": "1",
            "ipc.client.connect.timeout": "5000",
        },
        "hdfs-site.xml": {
            # Complete the last block of a new file within a few ms instead of 400 ms.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
            "dfs.client.retry.policy.enabled": "false",
            # A standby or a refused connection answers at once, so the pauses are the waiting time.
            "dfs.client.failover.max.attempts": str(wait // hdfs_retry),
            "dfs.client.failover.sleep.max.millis": str(hdfs_retry),
        },
        "yarn-site.xml": {
            "yarn.resourcemanager.connect.max-wait.ms": give_up,
            "yarn.resourcemanager.connect.retry-interval.ms": str(retry),
            "yarn.client.failover-max-attempts": str(wait // retry),
            "yarn.client.failover-sleep-base-ms": str(retry),
            "yarn.client.failover-sleep-max-ms": str(retry),
            # After a submit the client polls until the application is accepted: 200 ms by default.
            "yarn.client.app-submission.poll-interval": "20",
            "yarn.client.application-client-protocol.poll-interval-ms": "20",
            "yarn.client.application-client-protocol.poll-timeout-ms": give_up,
        },
    }
    for name, values in changes.items():
        merged = {**read_properties(conf.directory / name), **values}
        (directory / name).write_bytes(write_properties(merged))
    return directory


IDLE_MINUTES = 8 * 60
#: A submit may take longer than one.
_LEAST_IDLE = 2
START_SECONDS = 60.0
JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xms16m",
    "-Xmx256m",
    "-Xss512k",
)
#: Writes a line every ten seconds into the driver's standard input while ``$1`` was touched within
#: ``$2`` minutes; a dead driver ends it by SIGPIPE, so that it is soon gone too. Prints the JVM's
#: pid.
_LAUNCH = """\
stamp=$1 minutes=$2 log=$3; shift 3
keep() { while [ -n "$(find "$stamp" -mmin "-$minutes" 2>/dev/null)" ]; do echo; sleep 10; done; }
keep 2>/dev/null </dev/null | "$@" >"$log" 2>&1 &
echo $!
"""


@dataclass(frozen=True)
class Running:
    """The content of ``driver.json``: the process (see ``ProcessIdentity``) and its port."""

    pid: int
    started: int
    boot: str
    port: int
    conf_dir: str

    @property
    def process(self) -> ProcessIdentity:
        """The process of the JVM."""
        return ProcessIdentity(self.pid, self.started, self.boot)


def launch(profile: Profile, conf: HadoopConf, directory: Path, deadline: float) -> Running:
    """Start a detached JVM, and write ``driver.json`` when it has a port."""
    minutes = _idle_minutes(profile)
    java = java_home(profile)
    command = yarn_command(profile, conf.directory)
    entries = client_classpath(command, java, conf.directory, directory / "classpath")
    overlay = write_overlay(conf, directory / "conf", profile.timeout)
    certificate, key = new_credentials()
    for name, data in (("skein.crt", certificate), ("skein.pem", key)):
        replace_file(directory / name, data, mode=0o600)
    gpu_resource = profile.settings.get("gpu_resource", GPU)
    if gpu_resource != GPU:
        target = overlay / RESOURCE_CLASS
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(resource_class(skein_jar(), gpu_resource))
    empty = _empty_jar(directory)
    tickets = driver_tickets(profile, conf, directory)
    tickets.refresh()
    (directory / "last-use").touch()
    with socket.create_server(("127.0.0.1", 0), backlog=16) as callback:
        env = dict(os.environ)
        # Java would use the tokens of a hub beside a ticket.
        env.pop(TOKEN_FILE_VARIABLE, None)
        env.update(
            SKEIN_CERTIFICATE=certificate.decode(),
            SKEIN_KEY=key.decode(),
            SKEIN_CALLBACK_PORT=str(callback.getsockname()[1]),
            CLASSPATH=":".join([str(overlay), skein_jar(), *entries]),
            JAVA_HOME=str(java),
            HADOOP_CONF_DIR=str(conf.directory),
        )
        if profile.user and not conf.kerberos:
            env["HADOOP_USER_NAME"] = profile.user
        env.update(tickets.env)
        # The driver signs in as itself; each request names the user for whom it acts.
        for noise in (
            *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
            "HADOOP_PROXY_USER",
        ):
            env.pop(noise, None)
        options = profile.settings.get("driver_java_options", "").split() or list(JVM_OPTIONS)
        options += tickets.jvm_options
        arguments = [str(java / "bin" / "java"), "-Dskein.log.level=INFO", *options]
        arguments += ["com.anaconda.skein.Driver", "--jar", str(empty), *tickets.arguments]
        pid = _detach(arguments, env, directory, minutes)
        try:
            port = _wait_for_port(callback, pid, directory, deadline)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):  # no process could find this driver
                os.kill(pid, signal.SIGTERM)
            raise
    process = ProcessIdentity.of(pid)
    if process is None:
        raise failed(directory, _("its JVM ended"))
    running = Running(pid, process.started, process.boot, port, str(conf.directory))
    replace_file(directory / "driver.json", json.dumps(asdict(running)).encode(), mode=0o600)
    return running


def stop_directory(directory: Path) -> bool:
    """Stop the driver of ``directory`` by its pid; return whether there was one."""
    running = read_running(directory)
    for name in ("driver.json", TICKET_COPY):
        with contextlib.suppress(OSError):
            (directory / name).unlink()
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


def read_running(directory: Path) -> Running | None:
    """Return the driver of ``directory`` if that process is running."""
    try:
        running = Running(**json.loads((directory / "driver.json").read_bytes()))
        return running if running.process.alive else None
    except (OSError, ValueError, TypeError):
        return None


def _idle_minutes(profile: Profile) -> int:
    said = profile.settings.get("driver_idle_minutes", "").strip() or str(IDLE_MINUTES)
    if not (said.isascii() and said.isdecimal() and int(said[:9]) >= _LEAST_IDLE):
        raise ClusterError(
            _(
                "The YARN driver did not start: the setting driver_idle_minutes is {value!r}."
            ).format(value=said[:40]),
            _("Set it to a whole number of minutes, {minimum} or more.").format(
                minimum=_LEAST_IDLE
            ),
        )
    return int(said[:9])


def _detach(arguments: list[str], env: dict[str, str], directory: Path, minutes: int) -> int:
    launched = subprocess.run(
        ["/bin/sh", "-c", _LAUNCH, "sh", str(directory / "last-use"), str(minutes),
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
    """Wait until the driver connects to this process and reports its port."""
    while time.monotonic() < deadline:
        callback.settimeout(0.2)
        try:
            connection, _address = callback.accept()
        except TimeoutError:
            if ProcessIdentity.of(pid) is None:
                raise failed(directory, _("its JVM ended")) from None
            continue
        with connection, contextlib.suppress(OSError):
            if not _may_be_driver(connection):
                continue
            connection.settimeout(2.0)
            data = connection.recv(4, socket.MSG_WAITALL)
            port = int(struct.unpack("!i", data)[0]) if len(data) == 4 else 0
            if _is_own_port(port):
                return port
    raise failed(
        directory,
        _("it was not ready within {seconds:g} s").format(seconds=START_SECONDS),
    )


def _may_be_driver(connection: socket.socket) -> bool:
    """Return False for a connection of another user, which could delay the start."""
    try:
        # None: it is closed already. The port that it has named is checked all the same.
        return peer_uid(connection) in (None, os.geteuid())
    except UnknownPeerError:
        return True


def _is_own_port(port: int) -> bool:
    """Whether a process of this user listens on a port, if the system reports it."""
    try:
        return 0 < port < 1 << 16 and os.geteuid() in listener_uids("127.0.0.1", port)
    except UnknownPeerError:
        return True


def failed(directory: Path, what: str) -> ClusterError:
    """Return the error for a driver that did not start, from its log."""
    return start_error(directory / "driver.log", what)


def _empty_jar(directory: Path) -> Path:
    """Return an empty jar: skein uploads the jar of the driver with each submission.

    Masters get skein's jar from the cache of the job root instead (``cached_files``).
    """
    path = directory / "nothing.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
    return path
