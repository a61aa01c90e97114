"""Start the daemons of a cluster in order: detect running ones, start the others, wait for all."""

from __future__ import annotations

import getpass
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, urlencode

from submarine_minicluster.hadoop import (
    HDFS_LOGS,
    HDFS_TMP,
    KDC,
    SUPERUSER,
    Access,
    Daemon,
    DaemonRunner,
    RestError,
    WebHdfs,
    all_daemons,
    await_keytabs,
    default_fs,
    get_json,
    http_request,
    login,
)
from submarine_minicluster.layout import Layout
from submarine_minicluster.lifecycle import readiness
from submarine_minicluster.machine import accepts_connections, terminate
from submarine_minicluster.settings import SavedCluster, Settings
from submarine_runtime.translation import _, ngettext

Progress = Callable[[str], None]

_NOT_COPIED = shutil.ignore_patterns("in_use.lock", "edits_*")

RESPONSE_TIMEOUT = 20.0
"""Seconds after which a daemon that does not answer is killed."""


class Startup:
    """One start of a cluster, or of its missing daemons.

    Parameters
    ----------
    layout, saved
        Directory and settings of the cluster; its configuration is already written.
    runner
        Starts the daemons.
    progress
        Called with a line about each step.
    """

    def __init__(
        self, layout: Layout, runner: DaemonRunner, saved: SavedCluster, progress: Progress
    ) -> None:
        self._layout = layout
        self._runner = runner
        self._saved = saved
        self._progress = progress
        self._daemons = all_daemons(saved.settings)

    def run(self) -> None:
        """Start all daemons that do not run, then wait until all are ready."""
        if self._saved.settings.kerberos:
            self._start_kdc()
        daemons, runner, progress = self._daemons, self._runner, self._progress
        missing = [one for one in daemons if not self._works(one)]
        if not missing:
            progress(
                _("minicluster {root!r} is running already").format(root=self._layout.root.name)
            )
        elif len(missing) < len(daemons):
            progress(
                _("some daemons do not run: starting ") + ", ".join(one.name for one in missing)
            )
        else:
            progress(
                _("starting {count} daemons of Hadoop {hadoop}").format(
                    count=len(missing), hadoop=self._saved.settings.releases
                )
            )
        runner.terminate_unrecorded(missing)
        namenodes, history = runner.replicas("namenode"), daemons[-1]
        # The JVMs start in parallel, with two exceptions: HDFS is formatted before the NameNode
        # starts, and the history server starts after the parents of its HDFS directories exist.
        for daemon in missing:
            if daemon not in (*namenodes, history):
                runner.start(daemon)
        for namenode in namenodes:
            if namenode in missing:
                self._format(namenode)
                runner.start(namenode)
        self._await_hdfs()
        if history in missing:
            runner.start(history)
        self._await_yarn()

    def _format(self, namenode: Daemon) -> None:
        """Create the data of a NameNode at its first start; a second one has a copy."""
        data = self._layout.data(namenode.name)
        # Formatting writes the image last.
        if list(data.glob("current/fsimage_*.md5")):
            return
        first = self._runner.replicas("namenode")[0]
        if namenode == first:
            if self._saved.settings.encryption_zones:
                self._runner.create_key(namenode)
            self._runner.format_namenode(namenode)
            self._progress(_("formatted a new HDFS"))
            return
        draft = data.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(data, ignore_errors=True)
        # The other one may run already. Its image does not change, and its edits are shared.
        shutil.copytree(self._layout.data(first.name), draft, ignore=_NOT_COPIED)
        draft.rename(data)

    def _activate(self, kind: str) -> Daemon:
        """Return the active daemon of a kind; with high availability, choose one if none is."""
        found = self._runner.replicas(kind)
        if not self._saved.settings.ha:
            return found[0]
        for daemon in found:
            ready = partial(self._runner.awaits_activation, daemon)
            self._wait(_("it does not answer"), ready, daemon)
        active = self._runner.find_active(kind)
        if active is None:
            active = found[0]
            self._runner.activate(active)
        self._progress(
            _("{name} is the active {title}").format(name=active.name, title=active.title)
        )
        return active

    def _start_kdc(self) -> None:
        """Start the KDC if it does not run, and wait for the keytabs of daemons and users."""
        port = self._saved.ports["kdc"]
        if self._runner.identity(KDC) is None:
            self._runner.terminate_unrecorded([KDC])
            self._runner.start(KDC)
        self._wait(_("it does not answer"), lambda: accepts_connections(port), KDC)
        await_keytabs(self._layout, self._saved)
        self._progress(_("the Kerberos KDC is ready at 127.0.0.1:{port}").format(port=port))

    def _works(self, daemon: Daemon) -> bool:
        """Whether a daemon runs and answers. A daemon that hangs is killed."""
        identity = self._runner.identity(daemon)
        if identity is None:
            return False
        if readiness.responds(
            self._runner.url(daemon), RESPONSE_TIMEOUT, self._runner.administrator
        ):
            return True
        self._progress(
            _("{daemon} runs but does not answer: killing it").format(daemon=daemon.name)
        )
        terminate([identity], grace=0)
        return False

    def _await_hdfs(self) -> None:
        """Wait until HDFS is writable and create its directories."""
        namenode = self._activate("namenode")
        datanode = next(one for one in self._daemons if one.title == "DataNode")
        hdfs = self._runner.hdfs()
        self._wait(
            _("HDFS is not writable"), lambda: readiness.hdfs_writable(hdfs), namenode, datanode
        )
        make_directories(hdfs, self._saved)
        self._progress(_("HDFS is ready at {address}").format(address=default_fs(self._saved)))

    def _await_yarn(self) -> None:
        """Wait until jobs can be submitted and logs can be read."""
        rm, history = self._activate("resourcemanager"), self._daemons[-1]
        nodes = [one for one in self._daemons if one.title == "NodeManager"]
        silent, url = _("it does not answer"), self._runner.url
        access = self._runner.administrator
        for node in nodes:
            self._wait(silent, partial(readiness.node_up, url(node), access), node, rm)
        self._wait(
            _("nodes are missing"),
            lambda: readiness.running_nodes(url(rm), access) >= len(nodes),
            rm,
            *nodes,
        )
        assign_labels(url(rm), self._saved, access)
        self._progress(
            ngettext(
                "YARN has {count} node at {rm}", "YARN has {count} nodes at {rm}", len(nodes)
            ).format(count=len(nodes), rm=url(rm))
        )
        self._wait(silent, partial(readiness.history_up, url(history), access), history)
        self._progress(
            _("the history server serves logs at {history}").format(history=url(history))
        )

    def _wait(self, what: str, check: Callable[[], bool], *daemons: Daemon) -> None:
        readiness.wait_until(what, check, self._runner, daemons, self._progress)


def own_user_names() -> set[str]:
    """Return the user names that this user's clients send."""
    named = os.environ.get("HADOOP_USER_NAME")
    return {login(), *([named] if named else [])}


def make_directories(hdfs: WebHdfs, saved: SavedCluster) -> None:
    """Create the directories of HDFS that users and daemons need."""
    superuser = SUPERUSER
    hdfs.mkdir(HDFS_TMP, owner=superuser, group="supergroup", mode="1777")
    hdfs.mkdir(HDFS_LOGS, owner="yarn", group="hadoop", mode="1777")
    hdfs.mkdir("/mr-history", owner="mapred", group="hadoop", mode="755")
    hdfs.mkdir("/user", owner=superuser, group="supergroup", mode="755")
    for user in saved.users if saved.settings.kerberos else own_user_names():
        make_home(hdfs, user, saved.settings)


def make_home(hdfs: WebHdfs, user: str, settings: Settings) -> None:
    """Create a user's home directory; with Kerberos it is private."""
    mode = "700" if settings.kerberos else "755"
    hdfs.mkdir(f"/user/{user}", owner=user, group=user, mode=mode)


def assign_labels(rm: str, saved: SavedCluster, access: Access | None = None) -> None:
    """Define the node labels of `saved` and assign them to their nodes. May be repeated.

    Raises
    ------
    RestError
        If the ResourceManager rejects them.
    """
    pairs = saved.settings.node_labels
    if not pairs:
        return
    labels = [{"name": name, "exclusivity": "false"} for name in sorted({n for n, _ in pairs})]
    _post_json(f"{rm}/ws/v1/cluster/add-node-labels", {"nodeLabelInfo": labels}, {}, access)
    nodes = get_json(f"{rm}/ws/v1/cluster/nodes", access)["nodes"]["node"]
    for name, index in pairs:
        port = f":{saved.ports[f'nodemanager-{index}']}"
        node = next(entry["id"] for entry in nodes if entry["id"].endswith(port))
        replace = f"{rm}/ws/v1/cluster/nodes/{quote(node)}/replace-labels"
        _post_json(replace, {}, {"labels": name}, access)


def _post_json(
    url: str, body: dict[str, object], query: dict[str, str], access: Access | None
) -> None:
    parameters = urlencode({"user.name": getpass.getuser(), **query})
    status, answer, _unused = http_request(
        "POST", f"{url}?{parameters}", body=json.dumps(body).encode(), access=access
    )
    if status >= 300:
        raise RestError(
            _("{url}: HTTP {status}: {answer}").format(
                url=url, status=status, answer=answer[:500].decode(errors="replace")
            )
        )
