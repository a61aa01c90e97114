"""Profile: the named configuration of one cluster. ``config`` creates it."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from submarine_jobs.model.container import container_directory


def default_state_dir() -> Path:
    """Return the host-local state directory of this user; never on a shared file system."""
    container = container_directory()
    if container is not None and "XDG_STATE_HOME" not in os.environ:
        return container / "jupyter-submarine"
    return Path(platformdirs.user_state_dir("jupyter-submarine"))


def hadoop_user(named: str | None = None) -> str:
    """Return the user of simple authentication: ``named``, HADOOP_USER_NAME, or the account."""
    return named or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def primary_of(principal: str) -> str:
    """Return the first component of a Kerberos principal: ``hub`` of ``hub/host@REALM``."""
    return principal.partition("@")[0].partition("/")[0]


@dataclass(frozen=True)
class Profile:
    """A cluster and how to use it.

    Parameters
    ----------
    backend
        The name of an installed backend; None: no cluster is configured or requested.
    hadoop_conf_dir
        Directory of core-site.xml and the other Hadoop client files.
    job_root
        URL or path of the directory that holds the job directories; None: the backend's default.
    python
        Interpreter of ``--python-env host``.
    timeout
        Time limit of a single call to the cluster, in seconds.
    keytab, principal
        Kerberos keys of this user and their name (``name@REALM``); None: the ticket cache.
    proxy_user
        User on whose behalf a service acts, as a proxy user of Hadoop; None: no other.
    state_dir
        Host-local directory for the driver, the job store and local jobs.
    """

    name: str = "default"
    backend: str | None = None
    hadoop_conf_dir: Path | None = None
    java_home: Path | None = None
    queue: str | None = None
    job_root: str | None = None
    python_env: str = "host"
    python: str = sys.executable
    user: str | None = None
    keytab: Path | None = None
    principal: str | None = None
    proxy_user: str | None = None
    timeout: float = 20.0
    state_dir: Path = field(default_factory=default_state_dir)
    settings: Mapping[str, str] = field(default_factory=dict)
