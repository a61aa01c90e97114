"""The order of a start: what runs already, what is repaired, what waits for what.

How a daemon is started is in `daemons`, how one sees that it works in `readiness`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from submarine_minicluster.hadoop import Daemon, Runner, all_daemons, config, rest
from submarine_minicluster.layout import Layout
from submarine_minicluster.lifecycle import node_labels as labelling, readiness
from submarine_minicluster.machine import processes
from submarine_minicluster.settings import Saved

Progress = Callable[[str], None]

HANGS_AFTER = 20.0
"""Seconds after which a daemon that does not answer is given up."""


class Bringup:
    """One start of a cluster, or of what is missing of it.

    Parameters
    ----------
    layout, saved
        Its directory and settings; the configuration is written.
    runner
        Starts its daemons.
    progress
        Called with a line about each step.
    """

    def __init__(self, layout: Layout, runner: Runner, saved: Saved, progress: Progress) -> None:
        self._layout = layout
        self._runner = runner
        self._saved = saved
        self._progress = progress
        self._daemons = all_daemons(saved.settings.nodes)

    def run(self) -> None:
        """Start every daemon that does not run, then wait for all of them."""
        daemons, runner, progress = self._daemons, self._runner, self._progress
        missing = [one for one in daemons if not self._works(one)]
        if not missing:
            progress(f"minicluster {self._layout.root.name!r} is running already")
        elif len(missing) < len(daemons):
            progress("found it half dead: starting " + ", ".join(one.name for one in missing))
        else:
            progress(f"starting {len(missing)} daemons of Hadoop {self._saved.settings.hadoop}")
        runner.end_strays(missing)
        namenode, history = daemons[0], daemons[-1]
        # The JVMs start side by side. Only HDFS has to be formatted before its NameNode starts,
        # and the history server makes directories in HDFS, which have to be allowed first.
        for daemon in missing:
            if daemon not in (namenode, history):
                runner.start(daemon)
        if namenode in missing:
            # Its image is the last thing that formatting writes.
            if not list(self._layout.data("namenode").glob("current/fsimage_*.md5")):
                runner.format_namenode(namenode)
                progress("formatted a new HDFS")
            runner.start(namenode)
        self._await_hdfs()
        if history in missing:
            runner.start(history)
        self._await_yarn()

    def _works(self, daemon: Daemon) -> bool:
        """Whether a daemon runs and answers; one that hangs is killed, to be started anew."""
        identity = self._runner.identity(daemon)
        if identity is None:
            return False
        if readiness.answers(self._runner.url(daemon), HANGS_AFTER):
            return True
        self._progress(f"{daemon.name} runs but does not answer: killing it")
        processes.end([identity], grace=0)
        return False

    def _await_hdfs(self) -> None:
        """Wait until HDFS takes files, and lay it out."""
        namenode, datanode, *_ = self._daemons
        hdfs = self._runner.url(namenode)
        self._wait(
            "HDFS is not writable", lambda: readiness.hdfs_writable(hdfs), namenode, datanode
        )
        make_directories(rest.WebHdfs(hdfs, config.SUPERUSER))
        port = self._saved.ports["namenode"]
        self._progress(f"HDFS takes files at hdfs://{config.HOST}:{port}")

    def _await_yarn(self) -> None:
        """Wait until a job can be submitted and its logs be read."""
        _, _, rm, *nodes, history = self._daemons
        silent, url = "it does not answer", self._runner.url
        for node in nodes:
            self._wait(silent, partial(readiness.node_up, url(node)), node, rm)
        self._wait(
            "nodes are missing",
            lambda: readiness.running_nodes(url(rm)) >= len(nodes),
            rm,
            *nodes,
        )
        labelling.give(url(rm), self._saved)
        self._progress(f"YARN has {len(nodes)} node{'s'[: len(nodes) > 1]} at {url(rm)}")
        self._wait(silent, partial(readiness.history_up, url(history)), history)
        self._progress(f"the history server serves logs at {url(history)}")

    def _wait(self, what: str, check: Callable[[], bool], *daemons: Daemon) -> None:
        readiness.wait_until(what, check, self._runner, daemons, self._progress)


def own_names() -> set[str]:
    """The names by which this user's clients call."""
    named = os.environ.get("HADOOP_USER_NAME")
    return {config.login(), *([named] if named else [])}


def make_directories(hdfs: rest.WebHdfs) -> None:
    """Lay out HDFS as an administrator would."""
    superuser = config.SUPERUSER
    hdfs.mkdir(config.HDFS_TMP, owner=superuser, group="supergroup", mode="1777")
    hdfs.mkdir(config.HDFS_LOGS, owner="yarn", group="hadoop", mode="1777")
    hdfs.mkdir("/mr-history", owner="mapred", group="hadoop", mode="755")
    hdfs.mkdir("/user", owner=superuser, group="supergroup", mode="755")
    for user in own_names():
        hdfs.mkdir(f"/user/{user}", owner=user, group=user, mode="755")
