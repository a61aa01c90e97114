"""The class `Minicluster`: start, query, change and stop one named cluster."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from submarine_minicluster import hadoop
from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import (
    HUB,
    KDC,
    SUPERUSER,
    USERS,
    Access,
    Daemon,
    DaemonRunner,
    DaemonStatus,
    all_daemons,
    await_keytabs,
    check_disk,
    default_fs,
    ensure_jars,
    ensure_kdc,
    lib_dir,
    password,
    refresh_tickets,
    write_client_commands,
    write_configuration,
    write_kerberos,
    write_policy,
    write_principals,
)
from submarine_minicluster.layout import Layout, clusters_dir
from submarine_minicluster.lifecycle import (
    Startup,
    choose_settings,
    kill_node,
    make_home,
    own_user_names,
    save_with_ports,
    stop_all,
)
from submarine_minicluster.machine import (
    Java,
    check_host_name,
    file_lock,
    find_java,
    java_at,
    terminate,
)
from submarine_minicluster.settings import SavedCluster, Settings, check_name
from submarine_runtime.translation import _

Progress = Callable[[str], None]

_NEEDED_BYTES = 1 << 30
_START_TIMEOUT = 900.0
_REFRESH_TIMEOUT = 120.0


def _silent(_: str) -> None:
    """Ignore progress messages."""


@dataclass(frozen=True)
class ClusterStatus:
    """Status of a cluster and its daemons."""

    name: str
    settings: Settings
    default_fs: str
    daemons: list[DaemonStatus]

    @property
    def state(self) -> str:
        """`running`, `stopped`, or `degraded` if only some daemons run."""
        up = sum(daemon.running for daemon in self.daemons)
        if up == len(self.daemons):
            return "running"
        return "degraded" if up else "stopped"

    def as_json(self) -> dict[str, Any]:
        """Return the status as a JSON object."""
        return {"state": self.state, **asdict(self)}


class Minicluster:
    """A Hadoop cluster of this user on this machine.

    Parameters
    ----------
    name
        Clusters with different names are independent and may run at the same time.
    parent
        Directory that contains clusters; by default in the platform's data directory.

    Raises
    ------
    MiniclusterError
        If `name` is not valid.
    """

    def __init__(self, name: str = "default", *, parent: Path | None = None) -> None:
        self.name = check_name(name)
        self._parent = (parent or clusters_dir()).absolute()
        self.layout = Layout(self._parent / name)

    @property
    def saved(self) -> SavedCluster:
        """Settings and ports of the cluster.

        Raises
        ------
        MiniclusterError
            If the cluster was never started.
        """
        saved = SavedCluster.read(self.layout.cluster_file)
        if saved is None:
            raise MiniclusterError(
                _(
                    "There is no minicluster {name!r}. Create it with `submarine minicluster "
                    "start{suffix}`."
                ).format(
                    name=self.name, suffix="" if self.name == "default" else " --name " + self.name
                )
            )
        return saved

    @property
    def default_fs(self) -> str:
        """Address of the cluster's HDFS, such as ``hdfs://127.0.0.1:12345``."""
        return default_fs(self.saved)

    def url(self, name: str) -> str:
        """Return the address of a daemon's web pages and REST interface."""
        return self._runner(self.saved).url(self._daemon(name))

    def status(self) -> ClusterStatus:
        """Return the status of the daemons, from the operating system only.

        Raises
        ------
        MiniclusterError
            When the cluster was never started.
        """
        saved = self.saved
        runner = self._runner(saved)
        found = [runner.status(daemon) for daemon in self._daemons(saved)]
        return ClusterStatus(self.name, saved.settings, self.default_fs, found)

    def env(self, user: str | None = None) -> dict[str, str]:
        """Return the variables that configure a client for this cluster.

        `PATH` is a directory to prepend to the existing PATH.

        Parameters
        ----------
        user
            User of a cluster with Kerberos. A ticket cache is made for the user from the keytab.
            None: `KRB5CCNAME` is not set.

        Raises
        ------
        MiniclusterError
            If the cluster does not know `user` or has no Kerberos, or the KDC does not answer.
        """
        saved = self.saved
        values = {
            "HADOOP_CONF_DIR": str(self.layout.client_conf),
            "JAVA_HOME": saved.java_home,
            "PATH": str(self.layout.bin),
        }
        if saved.settings.kerberos:
            values["KRB5_CONFIG"] = str(self.layout.krb5_conf)
        if user is not None:
            self._require_kerberos(saved)
            values["KRB5CCNAME"] = refresh_tickets(self.layout, saved, user)
        return values

    def environ(self, user: str | None = None) -> dict[str, str]:
        """Return `env` with the complete `PATH` of this process."""
        values = self.env(user)
        path = f"{values['PATH']}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**values, "PATH": path}

    def access(self, user: str) -> Access:
        """Return the access of a user of a cluster with Kerberos to its REST interfaces."""
        self._require_kerberos(self.saved)
        self.password(user)
        access = self._runner(self.saved).access(user)
        assert access is not None
        return access

    def password(self, user: str) -> str:
        """Return the Kerberos password of a user."""
        self._require_kerberos(self.saved)
        return password(self.layout, user)

    def keytab(self, user: str) -> Path:
        """Return the Kerberos keytab of a user."""
        self.password(user)
        return self.layout.keytab(user)

    @property
    def ca(self) -> Path | None:
        """PEM file of the certificate authority; None for a cluster without HTTPS."""
        return self.layout.ca if self.saved.settings.https else None

    def _require_kerberos(self, saved: SavedCluster) -> None:
        if not saved.settings.kerberos:
            raise MiniclusterError(
                _(
                    "Minicluster {name!r} has no Kerberos: a client names its user in "
                    "HADOOP_USER_NAME."
                ).format(name=self.name)
            )

    def start(
        self, settings: Settings | None = None, progress: Progress = _silent
    ) -> ClusterStatus:
        """Start the cluster, or its missing daemons, and wait until it accepts jobs.

        Parameters
        ----------
        settings
            Size and version. None means those of the existing cluster.
        progress
            Called with a line about each step.

        Raises
        ------
        MiniclusterError
            If a requirement is missing on this machine, if a daemon fails (with its last error
            lines), or if a running cluster has other settings.
        """
        with self._locked(progress):
            java = find_java()
            check_host_name()
            old = SavedCluster.read(self.layout.cluster_file)
            running = bool(old and self._alive(old))
            chosen = choose_settings(self.name, old, settings, running)
            self.layout.make()
            check_disk(self.layout.root, _NEEDED_BYTES)
            kept = old.ports if old else {}
            named = {*(old.users if old else ()), *own_user_names()}
            if chosen.kerberos:
                named |= {*USERS, HUB}
            saved = SavedCluster(chosen, str(java.home), kept, tuple(sorted(named)))
            save_with_ports(self.layout, saved, running, progress)
            lib = ensure_jars(chosen.hadoop, java, progress)
            if chosen.java:
                java_at(Path(chosen.java), maximum=8 if chosen.hdfs else None)
            if chosen.hdfs:
                ensure_jars(chosen.hdfs, java, progress)
            if chosen.kerberos:
                ensure_kdc(chosen.hadoop, java, progress)
                write_kerberos(self.layout, saved)
            if chosen.https:
                # By attribute: the import of cryptography is slow, and only HTTPS uses it.
                hadoop.ensure_certificates(self.layout, chosen.host)
            write_configuration(self.layout, saved, lib)
            write_client_commands(self.layout, java, lib, kerberos=chosen.kerberos)
            Startup(self.layout, self._runner(saved), saved, progress).run()
            if old and running and not chosen.kerberos and set(saved.users) - set(old.users):
                self._refresh_policy()
            return self.status()

    def add_user(self, user: str) -> None:
        """Admit a user to the cluster and create the user's home directory in HDFS."""
        self.admit(user)
        make_home(self._runner(self.saved).hdfs(), user, self.saved.settings)

    def admit(self, *users: str) -> None:
        """Let clients act as these users. Other names are rejected.

        Without Kerberos, a client names the user in `HADOOP_USER_NAME`; with Kerberos, the users
        get principals.
        """
        with self._locked(_silent):
            saved = self.saved
            if new := tuple(one for one in users if check_name(one) not in saved.users):
                saved.users = (*saved.users, *new)
                saved.write(self.layout.cluster_file)
                if saved.settings.kerberos:
                    write_principals(self.layout, saved)
                    await_keytabs(self.layout, saved)
                else:
                    write_policy(self.layout, saved)
                    self._refresh_policy()

    def _refresh_policy(self) -> None:
        """Make the daemons reload the list of admitted users."""
        environ = {**self.environ(), "HADOOP_USER_NAME": SUPERUSER}
        for command in (("hdfs", "dfsadmin"), ("yarn", "rmadmin")):
            words = [str(self.layout.bin / command[0]), command[1], "-refreshServiceAcl"]
            done = subprocess.run(
                words, env=environ, capture_output=True, text=True, timeout=_REFRESH_TIMEOUT
            )
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                raise MiniclusterError(
                    _("{words} failed: {last}").format(
                        words=" ".join(words[1:]), last="".join(last)[:300]
                    )
                )

    def stop(self, progress: Progress = _silent, *, delete_data: bool = False) -> bool:
        """Stop the cluster and everything that runs on it.

        Parameters
        ----------
        progress
            Called with a line about each step.
        delete_data
            Also remove the cluster's directory: HDFS, logs, settings.

        Returns
        -------
        bool
            Whether any process was running.
        """
        if not self.layout.root.is_dir():
            return False
        with self._locked(progress):
            saved = SavedCluster.read(self.layout.cluster_file)
            runner = self._runner(saved) if saved else None
            ended = stop_all(self.layout, runner, self._daemons(saved), progress)
            if delete_data:
                shutil.rmtree(self.layout.root)
                progress(_("removed {root}").format(root=self.layout.root))
        return ended > 0

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a daemon, for fault tests. After SIGKILL, wait until it has ended.

        Parameters
        ----------
        name
            Name of the daemon, for example ``nodemanager-0``.
        number
            Number of the signal.

        Raises
        ------
        MiniclusterError
            If the daemon does not run.
        """
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        if identity is None:
            raise MiniclusterError(
                _("{name} of minicluster {minicluster!r} is not running.").format(
                    name=name, minicluster=self.name
                )
            )
        if number == signal.SIGKILL:
            terminate([identity], grace=0)
        else:
            identity.signal(number)

    def fail_node(self, name: str) -> None:
        """Kill a NodeManager and all its containers, as a power failure of the machine does."""
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        kill_node(self.layout, daemon, identity)

    def active(self, kind: str) -> str:
        """Return the name of the active daemon.

        Parameters
        ----------
        kind
            ``namenode`` or ``resourcemanager``.

        Raises
        ------
        MiniclusterError
            If none is active.
        """
        return self._runner(self.saved).active(kind).name

    def fail_over(self, kind: str) -> str:
        """Kill the active daemon of a cluster with high availability and activate the standby.

        `start` starts the killed daemon again, as the standby. If the active one has ended already,
        only the standby is activated.

        Parameters
        ----------
        kind
            ``namenode`` or ``resourcemanager``.

        Returns
        -------
        str
            Name of the daemon that is active now.

        Raises
        ------
        MiniclusterError
            If the cluster has no high availability, or the other daemon does not run.
        """
        with self._locked(_silent):
            saved = self.saved
            if not saved.settings.ha:
                raise MiniclusterError(
                    _(
                        "Minicluster {name!r} has no high availability. Create one with "
                        "`submarine minicluster start --ha --name ANOTHER`."
                    ).format(name=self.name)
                )
            runner = self._runner(saved)
            found = runner.replicas(kind)
            new = next((one for one in found if runner.ha_state(one) == "standby"), None)
            if new is None:
                raise MiniclusterError(
                    _(
                        "No standby {kind} of minicluster {name!r} answers. Start it with "
                        "`submarine minicluster start --name {name}`."
                    ).format(kind=kind, name=self.name)
                )
            # The active one may hang, so its state is not requested.
            old = (runner.identity(one) for one in found if one != new)
            terminate([one for one in old if one], grace=0)
            runner.activate(new)
            return new.name

    def restart(self, name: str, progress: Progress = _silent) -> ClusterStatus:
        """Stop one daemon, start it again and wait until the cluster is ready."""
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        if identity:
            terminate([identity], grace=20)
        return self.start(progress=progress)

    def reload(self, *names: str, progress: Progress = _silent) -> ClusterStatus:
        """Kill daemons and start them with their configuration files as they are now.

        ``start`` and ``restart`` write these files again.
        """
        for name in names:
            self.kill(name)
        with self._locked(progress):
            saved = self.saved
            Startup(self.layout, self._runner(saved), saved, progress).run()
        return self.status()

    def _daemon(self, name: str) -> Daemon:
        daemons = {daemon.name: daemon for daemon in self._daemons(self.saved)}
        name = "nodemanager-0" if name == "nodemanager" else name
        if name not in daemons:
            raise MiniclusterError(
                _("There is no daemon {name!r}. Use one of {daemons}.").format(
                    name=name, daemons=", ".join(daemons)
                )
            )
        return daemons[name]

    def _runner(self, saved: SavedCluster) -> DaemonRunner:
        java = Java(Path(saved.settings.java or saved.java_home), 0)
        return DaemonRunner(self.layout, saved, java, lib_dir(saved.settings.hadoop))

    def _alive(self, saved: SavedCluster) -> list[Daemon]:
        runner = self._runner(saved)
        return [one for one in self._daemons(saved) if runner.identity(one)]

    @staticmethod
    def _daemons(saved: SavedCluster | None) -> list[Daemon]:
        if saved is None:
            return []
        daemons = all_daemons(saved.settings)
        return [KDC, *daemons] if saved.settings.kerberos else daemons

    @contextmanager
    def _locked(self, progress: Progress) -> Iterator[None]:
        """Hold the lock that permits one start or stop of this cluster at a time."""
        with file_lock(
            self._parent / f".{self.name}.lock",
            timeout=_START_TIMEOUT,
            on_wait=lambda: progress(_("waiting for another start or stop of this cluster")),
        ):
            yield
