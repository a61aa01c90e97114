"""`Minicluster`: one named cluster, from nothing to running and back.

What other packages, tests and the commands use. Settings and ports are settled in `planning`, the
order of a start and what to repair in `bringup`, single processes in `daemons`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import (
    Daemon,
    Runner,
    all_daemons,
    check_disk,
    client_commands as shims,
    config,
    config_files,
    ensure_jars,
    lib_dir,
    rest,
)
from submarine_minicluster.layout import Layout, clusters_dir
from submarine_minicluster.lifecycle import Bringup, planning, shutdown, startup as bringup
from submarine_minicluster.machine import Java, file_lock, find_java, ports, processes
from submarine_minicluster.settings import Saved, Settings, check_name
from submarine_minicluster.status import ClusterStatus

Progress = Callable[[str], None]

_NEEDED_BYTES = 1 << 30
_START_TIMEOUT = 900.0
_REFRESH_TIMEOUT = 120.0


def _silent(_: str) -> None:
    """Report progress to nobody."""


class Minicluster:
    """A Hadoop cluster of this user on this machine.

    Parameters
    ----------
    name
        Any number of clusters stand side by side under different names.
    parent
        The directory that holds clusters; the platform's data directory by default.

    Raises
    ------
    MiniclusterError
        When `name` cannot name a directory.
    """

    def __init__(self, name: str = "default", *, parent: Path | None = None) -> None:
        self.name = check_name(name)
        self._parent = (parent or clusters_dir()).absolute()
        self.layout = Layout(self._parent / name)

    @property
    def saved(self) -> Saved:
        """Settings and ports of the cluster.

        Raises
        ------
        MiniclusterError
            When it was never started.
        """
        saved = Saved.read(self.layout.saved)
        if saved is None:
            raise MiniclusterError(
                f"There is no minicluster {self.name!r}; `submarine minicluster start"
                f"{'' if self.name == 'default' else ' --name ' + self.name}` makes one."
            )
        return saved

    @property
    def default_fs(self) -> str:
        """Address of its HDFS, as in ``hdfs://127.0.0.1:12345``."""
        return f"hdfs://{config.HOST}:{self.saved.ports['namenode']}"

    def url(self, name: str) -> str:
        """Base address of a daemon's web pages and REST interface (WebHDFS: the NameNode's)."""
        return self._runner(self.saved).url(self._daemon(name))

    def status(self) -> ClusterStatus:
        """Which daemons run, and where. Asks the operating system only, so it is quick.

        Raises
        ------
        MiniclusterError
            When the cluster was never started.
        """
        saved = self.saved
        runner = self._runner(saved)
        found = [runner.status(daemon) for daemon in self._daemons(saved)]
        return ClusterStatus(self.name, saved.settings, self.default_fs, found)

    def env(self) -> dict[str, str]:
        """The variables that make a client use this cluster.

        `PATH` is the directory to put in front of the one that is set.
        """
        saved = self.saved
        return {
            "HADOOP_CONF_DIR": str(self.layout.client_conf),
            "JAVA_HOME": saved.java_home,
            "PATH": str(self.layout.bin),
        }

    def environ(self) -> dict[str, str]:
        """`env` as it is set in a process: `PATH` is complete."""
        values = self.env()
        path = f"{values['PATH']}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**values, "PATH": path}

    def start(
        self, settings: Settings | None = None, progress: Progress = _silent
    ) -> ClusterStatus:
        """Start the cluster, or what is missing of it; returns when a job can be submitted.

        Parameters
        ----------
        settings
            Size and version. None keeps those of an existing cluster.
        progress
            Called with a line about each step done.

        Raises
        ------
        MiniclusterError
            When something is missing on this machine, when a daemon fails (with its last error
            lines), or when a running cluster has other settings.
        """
        with self._locked(progress):
            java = find_java()
            ports.check_host_name()
            old = Saved.read(self.layout.saved)
            running = bool(old and self._alive(old))
            wanted = planning.settle(self.name, old, settings, running)
            self.layout.make()
            check_disk(self.layout.root, _NEEDED_BYTES)
            kept = old.ports if old else {}
            named = {*(old.users if old else ()), *bringup.own_names()}
            saved = Saved(wanted, str(java.home), kept, tuple(sorted(named)))
            planning.remember(self.layout, saved, running, progress)
            lib = ensure_jars(wanted.hadoop, java, progress)
            config_files.write(self.layout, saved, lib)
            shims.write(self.layout, java, lib)
            Bringup(self.layout, Runner(self.layout, saved, java, lib), saved, progress).run()
            if old and running and set(saved.users) - set(old.users):
                self._refresh_policy()
            return self.status()

    def add_user(self, user: str) -> None:
        """Let clients act as a user, by HADOOP_USER_NAME, who has a home directory in HDFS."""
        self.admit(user)
        hdfs = rest.WebHdfs(self.url("namenode"), config.SUPERUSER)
        hdfs.mkdir(f"/user/{user}", owner=user, group=user, mode="755")

    def admit(self, *users: str) -> None:
        """Let clients act as these users; other names than those of admitted users are refused."""
        with self._locked(_silent):
            saved = self.saved
            if new := tuple(one for one in users if check_name(one) not in saved.users):
                saved.users = (*saved.users, *new)
                saved.write(self.layout.saved)
                config_files.write_policy(self.layout, saved)
                self._refresh_policy()

    def _refresh_policy(self) -> None:
        """Let the daemons read again which users they serve."""
        environ = {**self.environ(), "HADOOP_USER_NAME": config.SUPERUSER}
        for command in (("hdfs", "dfsadmin"), ("yarn", "rmadmin")):
            words = [str(self.layout.bin / command[0]), command[1], "-refreshServiceAcl"]
            done = subprocess.run(
                words, env=environ, capture_output=True, text=True, timeout=_REFRESH_TIMEOUT
            )
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                raise MiniclusterError(f"{' '.join(words[1:])} failed: {''.join(last)[:300]}")

    def stop(self, progress: Progress = _silent, *, delete_data: bool = False) -> bool:
        """Stop the cluster with everything that runs on it.

        Parameters
        ----------
        progress
            Called with a line about each step done.
        delete_data
            Also remove its directory: HDFS, logs, settings.

        Returns
        -------
        bool
            Whether anything was running.
        """
        if not self.layout.root.is_dir():
            return False
        with self._locked(progress):
            saved = Saved.read(self.layout.saved)
            runner = self._runner(saved) if saved else None
            ended = shutdown.end_all(self.layout, runner, self._daemons(saved), progress)
            if delete_data:
                shutil.rmtree(self.layout.root)
                progress(f"removed {self.layout.root}")
        return ended > 0

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a daemon, for tests of faults; waits until it is dead by SIGKILL."""
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        if identity is None:
            raise MiniclusterError(f"{name} of minicluster {self.name!r} is not running.")
        if number == signal.SIGKILL:
            processes.end([identity], grace=0)
        else:
            identity.signal(number)

    def lose(self, name: str) -> None:
        """End a NodeManager with all its containers, as a machine goes that loses its power."""
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        shutdown.end_node(self.layout, daemon, identity)

    def restart(self, name: str, progress: Progress = _silent) -> ClusterStatus:
        """Stop one daemon in good order and start it again; returns when all work together."""
        daemon = self._daemon(name)
        identity = self._runner(self.saved).identity(daemon)
        if identity:
            processes.end([identity], grace=20)
        return self.start(progress=progress)

    def _daemon(self, name: str) -> Daemon:
        daemons = {daemon.name: daemon for daemon in all_daemons(self.saved.settings.nodes)}
        name = "nodemanager-0" if name == "nodemanager" else name
        if name not in daemons:
            raise MiniclusterError(f"{name!r} is not a daemon: it is one of {', '.join(daemons)}.")
        return daemons[name]

    def _runner(self, saved: Saved) -> Runner:
        java = Java(Path(saved.java_home), 0)
        return Runner(self.layout, saved, java, lib_dir(saved.settings.hadoop))

    def _alive(self, saved: Saved) -> list[Daemon]:
        runner = self._runner(saved)
        return [one for one in self._daemons(saved) if runner.identity(one)]

    @staticmethod
    def _daemons(saved: Saved | None) -> list[Daemon]:
        return all_daemons(saved.settings.nodes) if saved else []

    @contextmanager
    def _locked(self, progress: Progress) -> Iterator[None]:
        """One start or stop of this cluster at a time."""
        with file_lock(
            self._parent / f".{self.name}.lock",
            timeout=_START_TIMEOUT,
            on_wait=lambda: progress("waiting for another start or stop of this cluster"),
        ):
            yield
