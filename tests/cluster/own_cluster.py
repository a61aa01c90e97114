"""A profile of a minicluster with a driver of its own, and a minicluster of a test's own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster, Settings


@contextmanager
def own_profile(environ: Mapping[str, str], state_dir: Path, **fields: Any) -> Iterator[Profile]:
    """Yield a profile; stop its driver at the end.

    Parameters
    ----------
    environ
        Environment of a client, such as that of ``Minicluster.environ``.
    fields
        Other fields of the profile.
    """
    profile = Profile(
        backend="yarn",
        hadoop_conf_dir=Path(environ["HADOOP_CONF_DIR"]),
        java_home=Path(environ["JAVA_HOME"]),
        state_dir=state_dir,
        **fields,
    )
    try:
        yield profile
    finally:
        stop_driver(profile)


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
        with own_profile(cluster.environ(), parent / "state", settings=dict(profile)) as own:
            yield cluster, Session(own)
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)
