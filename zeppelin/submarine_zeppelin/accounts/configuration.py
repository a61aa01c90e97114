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
from submarine_jobs.errors import RefusedError, SubmarineError
from submarine_jobs.model import Profile, primary_of
from submarine_runtime.translation import _
from submarine_zeppelin.accounts.drivers import hold_driver
from submarine_zeppelin.accounts.service_key import KEYTAB, PRINCIPAL, environment_with_key
from submarine_zeppelin.accounts.users import cluster_user, user_state_dir
from submarine_zeppelin.interface import AUTHENTICATION, authentication_property, text_property

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
    "keytab": KEYTAB,
    "principal": PRINCIPAL,
}
#: Configuration values that child programs receive. The keytab and its principal are not among
#: them: with these a user's program could act for all users.
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
        environ=environment_with_key(),
        sources={
            key: _("The interpreter setting {name}").format(name=name)
            for key, name in _PROPERTIES.items()
            if key not in typed_options
        },
    )
    profile = config.profile
    kerberos = requires_kerberos(profile)
    if kerberos is not None:
        check_authentication(properties, kerberos=kerberos)
    service = _service_user(profile) if kerberos else ""
    actor = cluster_user(
        user, properties, backend=profile.backend, kerberos=bool(kerberos), service=service
    )
    if actor is None:
        return config
    own = user_state_dir(actor, profile.state_dir)
    proxy_user = actor if kerberos and actor != service else None
    return replace(
        config, profile=replace(profile, user=actor, proxy_user=proxy_user, state_dir=own)
    )


def requires_kerberos(profile: Profile) -> bool | None:
    """Whether a profile's cluster requires Kerberos; None if there is no readable configuration."""
    if profile.backend != "yarn" or profile.hadoop_conf_dir is None:
        return None
    # cost: memory; other backends do not read a Hadoop configuration.
    from submarine_jobs.backends.yarn.cluster import HadoopConf

    try:
        return HadoopConf(profile.hadoop_conf_dir).kerberos
    except (SubmarineError, OSError):
        return None  # the command reports the error


def check_authentication(properties: Mapping[str, str], *, kerberos: bool) -> None:
    """Compare the setting of the cluster's authentication with its configuration.

    Raises
    ------
    RefusedError
        If they differ.
    """
    expected, actual = authentication_property(properties), "kerberos" if kerberos else "simple"
    if expected and expected != actual:
        raise RefusedError(
            _(
                "The interpreter's setting {name} is {expected}, but the cluster's authentication "
                "is {actual} (hadoop.security.authentication in core-site.xml)."
            ).format(name=AUTHENTICATION, expected=expected, actual=actual),
            _("Leave the setting empty, or choose another cluster with SUBMARINE_HADOOP_CONF_DIR."),
        )


def _service_user(profile: Profile) -> str:
    """Return the short name of the keytab's principal; empty if there is no keytab."""
    if profile.keytab is None:
        return ""
    return primary_of(profile.principal or "")


def child_environment(properties: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return variables that pass the configuration and the user to child programs.

    Raises
    ------
    RefusedError
        If child programs would need the service's keytab, which they do not receive.
    """
    if config.profile.keytab is not None and requires_kerberos(config.profile):
        raise RefusedError(
            _(
                "The cluster requires Kerberos, and programs of users on Zeppelin's machine do "
                "not receive Zeppelin's keytab ({name})."
            ).format(name=KEYTAB),
            _("Submit the workflow to Azkaban: `%submarine workflow submit NAME --to azkaban`."),
        )
    variables = {"SUBMARINE_PROFILE": text_property(properties, "submarine.profile")}
    for variable, key in OWN_VARIABLES.items():
        if key in _EXPORTED:
            variables[variable] = str(getattr(config.profile, key) or "")
    # A child program and its libraries act for this user only.
    variables["HADOOP_USER_NAME"] = config.profile.user or ""
    return {name: value for name, value in variables.items() if value}
