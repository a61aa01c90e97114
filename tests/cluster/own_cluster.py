"""A minicluster of a test's own, with a session on it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster, Settings


@contextmanager
def own_cluster(
    name: str, settings: Settings, **profile: str
) -> Iterator[tuple[Minicluster, Session]]:
    """Start a cluster; stop it and its driver at the end.

    Parameters
    ----------
    profile
        Settings of the session's profile.
    """
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster(name, parent=parent)
    try:
        cluster.start(settings)
        environ = cluster.environ()
        own = Profile(
            backend="yarn",
            hadoop_conf_dir=Path(environ["HADOOP_CONF_DIR"]),
            java_home=Path(environ["JAVA_HOME"]),
            state_dir=parent / "state",
            settings=dict(profile),
        )
        try:
            yield cluster, Session(own)
        finally:
            stop_driver(own)
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)
