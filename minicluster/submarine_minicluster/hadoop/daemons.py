"""Hadoop's daemons: main classes, JVM options, addresses, start and status of each.

The order of starts is in `lifecycle.startup`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop.config import (
    MARK,
    SERVICES,
    SUPERUSER,
    ZONE_KEY,
    nodemanagers,
    replicas,
)
from submarine_minicluster.hadoop.ha_config import HA_KINDS, ha_ids
from submarine_minicluster.hadoop.jars import kdc_dir, lib_dir
from submarine_minicluster.hadoop.kerberos import REALM, refresh_tickets, service_principal
from submarine_minicluster.hadoop.rest import Access, RestError, SecureWebHdfs, WebHdfs, get_json
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import (
    Identity,
    Java,
    accepts_connections,
    find_marked,
    launch,
    terminate,
)
from submarine_minicluster.settings import SavedCluster, Settings
from submarine_runtime.translation import _

# Prefer a fast start and a small size to peak performance.
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"]
# Hadoop 3.3's web servers need this on Java 17; later versions ignore it.
_OPENS = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"]
_OF_HDFS = ("NameNode", "DataNode")
_SERVER = "org.apache.hadoop.yarn.server"
_NN_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
_RM_ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
_KEY_SHELL = "org.apache.hadoop.crypto.key.KeyShell"
_ADMIN_TIMEOUT = 120.0


@dataclass(frozen=True)
class Daemon:
    """One daemon of a cluster.

    Attributes
    ----------
    name
        Name in `status`: namenode, datanode, resourcemanager, nodemanager-0, ...
    title
        Name in Hadoop's documentation.
    main
        Main class.
    heap_mb
        Maximum heap in MB.
    user
        Hadoop user of the daemon, not a user of the operating system.
    port, http
        Names of its main port and its web port; the KDC has no web port.
    """

    name: str
    title: str
    main: str
    heap_mb: int
    user: str
    port: str
    http: str


KDC = Daemon("kdc", "Kerberos KDC", "submarine.minicluster.Kdc", 64, "", "kdc", "")
"""Key distribution center, in a cluster with Kerberos."""


def all_daemons(settings: Settings) -> list[Daemon]:
    """Return the daemons of Hadoop in the order in which they start."""
    hdfs = "org.apache.hadoop.hdfs.server"
    history = "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer"
    rm, nm = (f"{_SERVER}.{part}" for part in ("resourcemanager", "nodemanager"))
    return [
        *(
            Daemon(
                name, "NameNode", f"{hdfs}.namenode.NameNode", 256, SUPERUSER,
                name, f"{name}-http",
            )
            for name in replicas("namenode", ha=settings.ha)
        ),
        Daemon(
            "datanode", "DataNode", f"{hdfs}.datanode.DataNode", 192, SUPERUSER,
            "datanode", "datanode-http",
        ),
        *(
            Daemon(
                name, "ResourceManager", f"{rm}.ResourceManager", 384, "yarn",
                port, f"{port}-http",
            )
            for name, port in zip(
                replicas("resourcemanager", ha=settings.ha), replicas("rm", ha=settings.ha),
                strict=True,
            )
        ),
        *(
            Daemon(name, "NodeManager", f"{nm}.NodeManager", 256, "yarn", name, f"{name}-http")
            for name in nodemanagers(settings.nodes)
        ),
        Daemon(
            "historyserver", "JobHistoryServer", history, 192, "mapred",
            "history", "history-http",
        ),
    ]  # fmt: skip


@dataclass(frozen=True)
class DaemonStatus:
    """Status of a daemon: whether its process runs, its loopback port, web address and log."""

    name: str
    running: bool
    pid: int | None
    port: int
    url: str
    log: str


class DaemonRunner:
    """Starts the daemons of one cluster and returns their status.

    Parameters
    ----------
    layout, saved
        Directory and settings of the cluster.
    java
        Java that runs the daemons.
    lib
        Directory of Hadoop's jars.
    """

    def __init__(self, layout: Layout, saved: SavedCluster, java: Java, lib: Path) -> None:
        self._layout = layout
        self._saved = saved
        self._java = java
        self._lib = lib

    def _command(self, daemon: Daemon, arguments: Sequence[str] = ()) -> list[str]:
        layout = self._layout
        older = self._saved.settings.hdfs
        lib = lib_dir(older) if older and daemon.title in _OF_HDFS else self._lib
        class_path = f"{lib}/*:{layout.conf(daemon.name)}"
        if self._saved.settings.kerberos:
            kdc = kdc_dir(self._saved.settings.hadoop)
            if daemon is KDC:
                class_path = f"{kdc}/classes:{kdc}/lib/*:{layout.conf(daemon.name)}"
            elif daemon.title == "NodeManager":  # with our SecureIOUtils
                class_path = f"{kdc}/classes:{class_path}"
        return [
            str(self._java.binary), *_JVM, *(_OPENS if self._java.has_modules else ()),
            f"-Xmx{daemon.heap_mb}m",
            f"-Djava.io.tmpdir={layout.tmp}",
            # A property, because containers would inherit an environment variable.
            f"-DHADOOP_USER_NAME={daemon.user}",
            f"-Dsubmarine.log={layout.log(daemon.name)}",
            "-cp", class_path,
            daemon.main, *arguments,
        ]  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """Return the environment of a node, without other variables of the caller's shell."""
        kept = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
        kerberos = {}
        if self._saved.settings.kerberos:
            # NodeManagers pass both to containers. Nodes of other clusters have the file in /etc.
            option = f"-Djava.security.krb5.conf={self._layout.krb5_conf}"
            kerberos = {
                "KRB5_CONFIG": str(self._layout.krb5_conf),
                "JAVA_TOOL_OPTIONS": option,
            }
        return {
            **kerberos,
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{self._java.home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
            "/sbin:/bin",
            "JAVA_HOME": str(self._java.home),
            # NodeManagers pass this to containers, as in other clusters.
            "HADOOP_CONF_DIR": str(self._layout.client_conf),
            MARK: str(self._layout.root),
        }

    def format_namenode(self, daemon: Daemon) -> None:
        """Create a new, empty HDFS, with the directory of shared edits if there is one.

        Raises
        ------
        MiniclusterError
            If the NameNode fails; with the last lines of its output.
        """
        command = self._command(daemon, ["-format", "-force", "-nonInteractive"])
        with self._layout.output(daemon.name).open("wb") as log:
            done = subprocess.run(
                command, env=self._environment(), cwd=self._layout.tmp, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, timeout=120, check=False,
            )  # fmt: skip
        if done.returncode:
            raise self.failure(daemon, _("could not format HDFS"))

    def create_key(self, daemon: Daemon) -> None:
        """Create the key of encryption zones, which the NameNode reads when it starts.

        Raises
        ------
        MiniclusterError
            If Hadoop's command for it fails.
        """
        words = ["create", ZONE_KEY, "-size", "128", "-provider", self._layout.key_provider]
        command = [
            str(self._java.binary), *_JVM, "-Xmx128m",
            "-cp", f"{self._lib}/*:{self._layout.client_conf}", _KEY_SHELL, *words,
        ]  # fmt: skip
        done = self._admin(command, self._environment())
        if done.returncode:
            raise self.failure(
                daemon, _("could not create a key: {reason}").format(reason=_reason(done))
            )

    def start(self, daemon: Daemon) -> None:
        """Start a daemon and write its pidfile. Does not wait until the daemon is ready."""
        log = self._layout.log(daemon.name)
        if log.exists():  # errors of an earlier run must not be reported for this one
            log.replace(log.with_suffix(".previous.log"))
        identity = launch(
            self._command(daemon, self._kdc_arguments() if daemon is KDC else ()),
            log=self._layout.output(daemon.name),
            env=self._environment(),
            cwd=self._layout.tmp,
        )
        if identity is None:
            raise self.failure(daemon, _("exited at once"))
        identity.write(self._layout.pidfile(daemon.name))

    def _kdc_arguments(self) -> list[str]:
        settings = self._saved.settings
        numbers = (self._saved.ports["kdc"], settings.ticket_lifetime, settings.ticket_renewable)
        return [REALM, *map(str, numbers), str(self._layout.kerberos)]

    def terminate_unrecorded(self, missing: Sequence[Daemon]) -> None:
        """Terminate JVMs of daemons that have no pidfile.

        A `start` that was killed may have started a JVM without writing the pidfile.
        """
        logs = {f"-Dsubmarine.log={self._layout.log(daemon.name)}" for daemon in missing}
        strays = [
            process
            for process in find_marked(MARK, str(self._layout.root))
            if logs.intersection(process.command_line)
        ]
        terminate(strays, grace=2)

    def identity(self, daemon: Daemon) -> Identity | None:
        """Return the daemon's process if it runs, else None."""
        return Identity.read(self._layout.pidfile(daemon.name))

    def url(self, daemon: Daemon) -> str:
        """Return the address of the daemon's web pages and REST interface."""
        if not daemon.http:
            return ""
        settings = self._saved.settings
        return f"{settings.scheme}://{settings.host}:{self._saved.ports[daemon.http]}"

    def access(self, user: str) -> Access | None:
        """Return the access of a user or service; None without Kerberos, where a name suffices."""
        layout, settings = self._layout, self._saved.settings
        if not settings.kerberos:
            return None
        service = user in SERVICES
        return Access(
            principal=service_principal(user, self._saved) if service else f"{user}@{REALM}",
            keytab=layout.keytab(user),
            krb5_conf=layout.krb5_conf,
            ccache=layout.tickets(f"{user}.rest"),
            ca=layout.ca if settings.https else None,
        )

    @property
    def administrator(self) -> Access | None:
        """Access of the administrator of HDFS and YARN."""
        return self.access(SUPERUSER)

    def hdfs(self) -> WebHdfs:
        """Return a client of HDFS, of the active NameNode, that acts as the superuser.

        Raises
        ------
        MiniclusterError
            If no NameNode is active.
        """
        base = self.url(self.active("namenode"))
        access = self.administrator
        return SecureWebHdfs(base, access) if access else WebHdfs(base, SUPERUSER)

    def replicas(self, kind: str) -> list[Daemon]:
        """Return the daemons of the kind `namenode` or `resourcemanager`.

        Raises
        ------
        MiniclusterError
            For another kind.
        """
        if kind not in HA_KINDS:
            raise MiniclusterError(
                _("{kind!r} never has a standby. Use {known}.").format(
                    kind=kind, known=_(" or ").join(HA_KINDS)
                )
            )
        names = replicas(kind, ha=self._saved.settings.ha)
        return [one for one in all_daemons(self._saved.settings) if one.name in names]

    def active(self, kind: str) -> Daemon:
        """Return the active one of the daemons of a kind; without high availability the only one.

        Raises
        ------
        MiniclusterError
            If none is active.
        """
        found = self.find_active(kind)
        if found is None:
            raise MiniclusterError(
                _(
                    "No {kind} of minicluster {name!r} is active. Run `submarine minicluster start "
                    "--name {name}`."
                ).format(kind=kind, name=self._layout.root.name)
            )
        return found

    def find_active(self, kind: str) -> Daemon | None:
        """Return what `active` returns; None if none is active."""
        found = self.replicas(kind)
        if not self._saved.settings.ha:
            return found[0]
        return next((one for one in found if self.ha_state(one) == "active"), None)

    def awaits_activation(self, daemon: Daemon) -> bool:
        """Whether the port for `activate` accepts connections."""
        name = daemon.port if daemon.title == "NameNode" else f"{daemon.port}-admin"
        return accepts_connections(self._saved.ports[name])

    def ha_state(self, daemon: Daemon) -> str:
        """Return `active` or `standby`; empty if the daemon does not run or does not answer."""
        if self.identity(daemon) is None:
            return ""
        url, access = self.url(daemon), self.administrator
        try:
            if daemon.title == "ResourceManager":
                state = get_json(f"{url}/ws/v1/cluster/info", access)["clusterInfo"]["haState"]
            else:
                query = "Hadoop:service=NameNode,name=NameNodeStatus"
                state = get_json(f"{url}/jmx?qry={query}", access)["beans"][0]["State"]
        except (RestError, KeyError, IndexError):
            return ""
        return str(state).lower()

    def activate(self, daemon: Daemon) -> None:
        """Make a standby of a cluster with high availability active.

        The other daemon of its kind must have ended or be a standby: nothing fences it.

        Raises
        ------
        MiniclusterError
            If Hadoop's command for it fails.
        """
        kind = "namenode" if daemon.title == "NameNode" else "resourcemanager"
        tool = _NN_ADMIN if kind == "namenode" else _RM_ADMIN
        if kind == "resourcemanager":
            remove_old_sequence_numbers(self._layout.data(kind))
        # With this option, the command does not fail because the other daemon has ended.
        words = ["-transitionToActive", "--forceactive", ha_ids(kind)[daemon.name]]
        environment = self._environment() | {"HADOOP_USER_NAME": SUPERUSER}
        if self._saved.settings.kerberos:
            environment["KRB5CCNAME"] = refresh_tickets(self._layout, self._saved, SUPERUSER)
        command = [
            str(self._java.binary), *_JVM, "-Xmx128m",
            "-cp", f"{self._lib}/*:{self._layout.client_conf}", tool, *words,
        ]  # fmt: skip
        done = self._admin(command, environment)
        if done.returncode:
            what = _("did not become active: {reason}").format(reason=_reason(done))
            raise self.failure(daemon, what)

    def _admin(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=environment, cwd=self._layout.tmp, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=_ADMIN_TIMEOUT, check=False,
        )  # fmt: skip

    def status(self, daemon: Daemon) -> DaemonStatus:
        """Return the status of a daemon, from the operating system only."""
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
        """Return an error with the last error lines of the daemon's log."""
        quoted = last_errors(self._layout.log(daemon.name), self._layout.output(daemon.name))
        words = "".join(f"\n  {line}" for line in quoted) or _(" The log is empty.")
        where = self._layout.log(daemon.name)
        return MiniclusterError(
            _("The {title} {what} (log: {where}).{words}").format(
                title=daemon.title, what=what, where=where, words=words
            )
        )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of the output of a command that failed."""
    return "".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-1:])[:300]


def remove_old_sequence_numbers(store: Path) -> None:
    """Keep only the highest sequence number of delegation tokens in the ResourceManagers' store.

    Each start of a ResourceManager leaves one file. Hadoop reads them in any order and continues
    from the last one; it then fails to create the next file, if that exists, and becomes a standby.
    """
    files = (store / "FSRMStateRoot" / "RMDTSecretManagerRoot").glob("RMDTSequenceNumber_*")
    numbered = sorted(files, key=lambda path: int(path.name.rpartition("_")[2]))
    for path in numbered[:-1]:
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


_ERROR_LINE = re.compile(r" (?:ERROR|FATAL) |Exception|Error\b|Caused by")


def last_errors(*logs: Path, count: int = 4) -> list[str]:
    """Return the last lines with errors from the ends of logs; without errors the last lines."""
    lines: list[str] = []
    for path in logs:
        try:
            with path.open("rb") as handle:
                handle.seek(max(0, path.stat().st_size - 65536))
                lines += handle.read(65536).decode(errors="replace").splitlines()
        except OSError:
            continue
    lines = [line[:400] for line in lines if line.strip() and not line.startswith("\tat ")]
    errors = [line for line in lines if _ERROR_LINE.search(line)]
    return list(dict.fromkeys(errors or lines))[-count:]
