"""Hadoop's daemons: their main classes, JVM options, addresses, and how one is started.

Knows one daemon at a time; their order, and whether they work together, is `cluster`'s matter.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop.config import HOST, MARK, SUPERUSER, nodemanagers
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import Java, processes
from submarine_minicluster.settings import Saved
from submarine_minicluster.status import DaemonStatus

# Short-lived on a small machine: quick to start and small, rather than fast in the long run.
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"]
# Hadoop 3.3's web servers need this on Java 17; it does no harm to later ones.
_OPENS = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"]
_SERVER = "org.apache.hadoop.yarn.server"


@dataclass(frozen=True)
class Daemon:
    """One daemon of a cluster.

    Attributes
    ----------
    name
        As it appears in `status`: namenode, datanode, resourcemanager, nodemanager-0, ...
    title
        Its class, as Hadoop's documentation names it.
    main
        The Java class that runs it.
    heap_mb
        Maximum heap in MB.
    user
        The Hadoop user it acts as. Not one of the operating system's.
    port, http
        Names of its main and its web port.
    """

    name: str
    title: str
    main: str
    heap_mb: int
    user: str
    port: str
    http: str


def all_daemons(nodes: int) -> list[Daemon]:
    """The daemons of a cluster, in the order in which they are started."""
    hdfs = "org.apache.hadoop.hdfs.server"
    history = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"
    rm, nm = (f"{_SERVER}.{part}" for part in ("resourcemanager", "nodemanager"))
    return [
        Daemon(
            "namenode", "NameNode", f"{hdfs}.namenode.NameNode", 256, SUPERUSER,
            "namenode", "namenode-http",
        ),
        Daemon(
            "datanode", "DataNode", f"{hdfs}.datanode.DataNode", 192, SUPERUSER,
            "datanode", "datanode-http",
        ),
        Daemon(
            "resourcemanager", "ResourceManager", f"{rm}.ResourceManager", 384, "yarn",
            "rm", "rm-http",
        ),
        *(
            Daemon(name, "NodeManager", f"{nm}.NodeManager", 256, "yarn", name, f"{name}-http")
            for name in nodemanagers(nodes)
        ),
        Daemon(
            "historyserver", "JobHistoryServer", history, 192, "mapred",
            "history", "history-http",
        ),
    ]  # fmt: skip


class Runner:
    """Starts the daemons of one cluster and says what became of them.

    Parameters
    ----------
    layout, saved
        The cluster's directory and settings.
    java
        What runs them.
    lib
        The directory of Hadoop's jars.
    """

    def __init__(self, layout: Layout, saved: Saved, java: Java, lib: Path) -> None:
        self._layout = layout
        self._saved = saved
        self._java = java
        self._lib = lib

    def _command(self, daemon: Daemon, arguments: Sequence[str] = ()) -> list[str]:
        layout = self._layout
        return [
            str(self._java.binary), *_JVM, *_OPENS,
            f"-Xmx{daemon.heap_mb}m",
            f"-Djava.io.tmpdir={layout.tmp}",
            # A property, not the environment variable: containers would inherit that.
            f"-DHADOOP_USER_NAME={daemon.user}",
            f"-Dsubmarine.log={layout.log(daemon.name)}",
            "-cp", f"{self._lib}/*:{layout.conf(daemon.name)}",
            daemon.main, *arguments,
        ]  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """A node's environment: nothing that happens to be set in the caller's shell."""
        kept = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{self._java.home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
            "/sbin:/bin",
            "JAVA_HOME": str(self._java.home),
            # NodeManagers pass this on to containers, as those of a real cluster do.
            "HADOOP_CONF_DIR": str(self._layout.client_conf),
            MARK: str(self._layout.root),
        }

    def format_namenode(self, daemon: Daemon) -> None:
        """Make a new, empty HDFS.

        Raises
        ------
        MiniclusterError
            With the last lines of what the NameNode said.
        """
        command = self._command(daemon, ["-format", "-force", "-nonInteractive"])
        with self._layout.output(daemon.name).open("wb") as log:
            done = subprocess.run(
                command, env=self._environment(), cwd=self._layout.tmp, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, timeout=120, check=False,
            )  # fmt: skip
        if done.returncode:
            raise self.failure(daemon, "could not format HDFS")

    def start(self, daemon: Daemon) -> None:
        """Start a daemon and write its pidfile; does not wait until it answers."""
        log = self._layout.log(daemon.name)
        if log.exists():  # what went wrong last time is not this time's error
            log.replace(log.with_suffix(".previous.log"))
        identity = processes.launch(
            self._command(daemon),
            log=self._layout.output(daemon.name),
            env=self._environment(),
            cwd=self._layout.tmp,
        )
        if identity is None:
            raise self.failure(daemon, "ended at once")
        identity.write(self._layout.pidfile(daemon.name))

    def end_strays(self, missing: Sequence[Daemon]) -> None:
        """End JVMs of daemons which are thought not to run.

        A `start` that was killed may have launched one and not come to write its pidfile.
        """
        logs = {f"-Dsubmarine.log={self._layout.log(daemon.name)}" for daemon in missing}
        strays = [
            process
            for process in processes.marked(MARK, str(self._layout.root))
            if logs.intersection(process.command_line)
        ]
        processes.end(strays, grace=2)

    def identity(self, daemon: Daemon) -> processes.Identity | None:
        """The daemon's process, if it runs."""
        return processes.Identity.read(self._layout.pidfile(daemon.name))

    def url(self, daemon: Daemon) -> str:
        """Address of the daemon's web pages and REST interface."""
        return f"http://{HOST}:{self._saved.ports[daemon.http]}"

    def status(self, daemon: Daemon) -> DaemonStatus:
        """Whether it runs, and where. Asks the operating system only."""
        identity = self.identity(daemon)
        return DaemonStatus(
            name=daemon.name,
            running=identity is not None,
            pid=identity.pid if identity else None,
            port=self._saved.ports[daemon.port],
            url=self.url(daemon),
            log=str(self._layout.log(daemon.name)),
        )

    def failure(self, daemon: Daemon, what: str) -> MiniclusterError:
        """An error that quotes the daemon's own last words."""
        quoted = last_errors(self._layout.log(daemon.name), self._layout.output(daemon.name))
        words = "".join(f"\n  {line}" for line in quoted) or " It wrote nothing."
        where = self._layout.log(daemon.name)
        return MiniclusterError(f"The {daemon.title} {what} (log: {where}).{words}")


_TELLING = re.compile(r" (?:ERROR|FATAL) |Exception|Error\b|Caused by")


def last_errors(*logs: Path, count: int = 4) -> list[str]:
    """The last lines that tell of an error in the ends of some logs, else the very last lines."""
    lines: list[str] = []
    for path in logs:
        try:
            with path.open("rb") as handle:
                handle.seek(max(0, path.stat().st_size - 65536))
                lines += handle.read(65536).decode(errors="replace").splitlines()
        except OSError:
            continue
    lines = [line[:400] for line in lines if line.strip() and not line.startswith("\tat ")]
    telling = [line for line in lines if _TELLING.search(line)]
    return list(dict.fromkeys(telling or lines))[-count:]
