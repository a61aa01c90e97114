"""The configuration and the session of a paragraph's commands: the settings', and its user's.

Reads Zeppelin's settings of the interpreter (``properties``) over submarine.toml; talks to nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.config import OWN_VARIABLES, Config, load_config
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.accounts.drivers import hold
from submarine_zeppelin.accounts.users import cluster_user, state_dir_of
from submarine_zeppelin.interface import properties as settings

_lock = threading.Lock()
_sessions: dict[str, Session] = {}
#: What another program of ours is told of a paragraph's configuration.
_TOLD = ("backend", "hadoop_conf_dir", "job_root", "queue", "state_dir", "user")


def session_of(config: Config) -> Session:
    """The one session of a profile in this process: one watcher, one connection to a cluster."""
    hold(config.profile)
    with _lock:
        return _sessions.setdefault(repr(config.profile), Session(config.profile))


def config_of(
    properties: Mapping[str, str], user: str, options: Mapping[str, Any] | None = None
) -> Config:
    """The configuration in force: the paragraph's options over the interpreter's settings."""
    given = {key: value for key, value in (options or {}).items() if value is not None}
    found = {
        "profile": settings.text(properties, "submarine.profile"),
        "queue": settings.text(properties, "submarine.yarn.queue"),
        "hadoop_conf_dir": settings.text(properties, "SUBMARINE_HADOOP_CONF_DIR"),
        "settings.driver_idle_minutes": settings.text(properties, "submarine.driver.idle.minutes"),
        "job_root": settings.text(properties, "submarine.algorithm.hdfs.path").replace(
            "${username}", user
        ),
    }
    config = load_config({**{key: value for key, value in found.items() if value}, **given})
    profile = config.profile
    kerberos = _wants_kerberos(config)
    actor = cluster_user(user, properties, backend=profile.backend, kerberos=kerberos)
    if actor is None:
        return config
    own = state_dir_of(actor, profile.state_dir)
    return replace(config, profile=replace(profile, user=actor, state_dir=own))


def _wants_kerberos(config: Config) -> bool:
    from submarine_jobs.backends.yarn.cluster import HadoopConf

    directory = config.profile.hadoop_conf_dir
    if config.profile.backend != "yarn" or directory is None:
        return False
    try:
        return HadoopConf(directory).kerberos
    except (SubmarineError, OSError):
        return False  # the verb itself says what is wrong with it


def environment_of(properties: Mapping[str, str], config: Config) -> dict[str, str]:
    """The variables that give this configuration, and this user, to another program of ours."""
    found = {"SUBMARINE_PROFILE": settings.text(properties, "submarine.profile")}
    for variable, key in OWN_VARIABLES.items():
        if key in _TOLD:
            found[variable] = str(getattr(config.profile, key) or "")
    # Such a program acts for this user alone, and so may all that it uses.
    found["HADOOP_USER_NAME"] = config.profile.user or ""
    return {name: value for name, value in found.items() if value}
