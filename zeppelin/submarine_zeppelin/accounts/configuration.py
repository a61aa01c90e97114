"""Configuration, job session and child environment of a paragraph's commands.

Settings of the interpreter (``interface.properties``) override submarine.toml.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.config import OWN_VARIABLES, Config, load_config
from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_zeppelin.accounts.drivers import hold_driver
from submarine_zeppelin.accounts.users import cluster_user, user_state_dir
from submarine_zeppelin.interface import text_property

_lock = threading.Lock()
_sessions: dict[str, Session] = {}
#: Minimum seconds between two updates of a card, which Zeppelin saves with the note.
_VIEW_INTERVAL = 1.0
#: Key of the configuration -> setting of the interpreter.
_PROPERTIES = {
    "profile": "submarine.profile",
    "queue": "submarine.yarn.queue",
    "hadoop_conf_dir": "SUBMARINE_HADOOP_CONF_DIR",
    "settings.driver_idle_minutes": "submarine.driver.idle.minutes",
    "job_root": "submarine.algorithm.hdfs.path",
}
#: Configuration values that child programs receive.
_EXPORTED = ("backend", "hadoop_conf_dir", "job_root", "queue", "state_dir", "user")


def shared_session(config: Config) -> Session:
    """Return the session of a profile. The process has one session for each profile."""
    hold_driver(config.profile)
    with _lock:
        session = _sessions.setdefault(repr(config.profile), Session(config.profile))
        session.view_interval = _VIEW_INTERVAL
        return session


def paragraph_config(
    properties: Mapping[str, str], user: str, options: Mapping[str, Any] | None = None
) -> Config:
    """Return the configuration: options of the command, then settings of the interpreter."""
    typed_options = {key: value for key, value in (options or {}).items() if value is not None}
    values = {
        key: text_property(properties, name).replace("${username}", user)
        if key == "job_root"
        else text_property(properties, name)
        for key, name in _PROPERTIES.items()
    }
    config = load_config(
        {**{key: value for key, value in values.items() if value}, **typed_options},
        sources={
            key: _("The interpreter setting {name}").format(name=name)
            for key, name in _PROPERTIES.items()
            if key not in typed_options
        },
    )
    profile = config.profile
    kerberos = _requires_kerberos(config)
    actor = cluster_user(user, properties, backend=profile.backend, kerberos=kerberos)
    if actor is None:
        return config
    own = user_state_dir(actor, profile.state_dir)
    return replace(config, profile=replace(profile, user=actor, state_dir=own))


def _requires_kerberos(config: Config) -> bool:
    directory = config.profile.hadoop_conf_dir
    if config.profile.backend != "yarn" or directory is None:
        return False
    # cost: memory; other backends do not read a Hadoop configuration.
    from submarine_jobs.backends.yarn.cluster import HadoopConf

    try:
        return HadoopConf(directory).kerberos
    except (SubmarineError, OSError):
        return False  # the command reports the error


def child_environment(properties: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return variables that pass the configuration and the user to child programs."""
    variables = {"SUBMARINE_PROFILE": text_property(properties, "submarine.profile")}
    for variable, key in OWN_VARIABLES.items():
        if key in _EXPORTED:
            variables[variable] = str(getattr(config.profile, key) or "")
    # A child program and its libraries act for this user only.
    variables["HADOOP_USER_NAME"] = config.profile.user or ""
    return {name: value for name, value in variables.items() if value}
