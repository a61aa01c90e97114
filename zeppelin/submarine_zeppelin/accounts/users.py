"""Determine the cluster user of a paragraph's job, and the state directory of each user.

Zeppelin authenticates the user of a paragraph, and the job runs as that user: this process sends
the name in each request and so acts for several users. On a cluster with Kerberos it does so with
the principal of its keytab, for which the cluster must allow this (a proxy user of Hadoop). If the
job cannot run as the user, it is rejected, unless the administrator allows that all jobs run as
Zeppelin's account.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from pathlib import Path

from submarine_jobs.errors import RefusedError
from submarine_jobs.model import Profile
from submarine_runtime.translation import _
from submarine_zeppelin.interface import ANONYMOUS, flag_property

SERVICE_USER = "submarine.allow.service.user"
#: User names become parts of paths and of addresses.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")
_HOW_TO_ALLOW = _(
    "An administrator can set {service_user} to true on the page Interpreters: all jobs then "
    "run as that account."
).format(service_user=SERVICE_USER)

#: Subdirectory of the state directory with an index of jobs for each user.
_USERS = "users"


def user_state_dir(user: str, common: Path) -> Path:
    """Return the state directory of a user. Its index contains only this user's jobs.

    Parameters
    ----------
    common
        State directory of Zeppelin's account.
    """
    return common / _USERS / user


def common_state_dir(profile: Profile) -> Path:
    """Return the state directory of Zeppelin's account for any user's profile."""
    own = profile.state_dir
    common = own.parent.parent
    return common if profile.user and own == user_state_dir(profile.user, common) else own


def cluster_user(
    user: str,
    properties: Mapping[str, str],
    *,
    backend: str | None,
    kerberos: bool = False,
    service: str = "",
) -> str | None:
    """Return the user with which a paragraph accesses the cluster: the ``user`` of a profile.

    Parameters
    ----------
    user
        User of the paragraph (``Context.user``).
    properties
        Settings of the interpreter.
    backend
        ``local`` or ``yarn``. Local processes always run as Zeppelin's account.
    kerberos
        Whether the cluster requires Kerberos, which does not accept names alone.
    service
        The cluster's user of Zeppelin's keytab, which may differ from Zeppelin's account; empty:
        there is no keytab, and Zeppelin's account has a ticket of its own.

    Returns
    -------
    str or None
        None means Zeppelin's account, or the user in its profile.

    Raises
    ------
    RefusedError
        If the job must not run.
    """
    account = getpass.getuser()
    if flag_property(properties, SERVICE_USER):
        return None
    if user == account and service in ("", account):
        return None
    if not user or user == ANONYMOUS:
        raise RefusedError(
            _(
                "Zeppelin has not authenticated you (it has no logins), so the job would run "
                "as Zeppelin's account, {account}."
            ).format(account=account),
            _HOW_TO_ALLOW,
        )
    if backend == "local":
        raise RefusedError(
            _(
                "A job on Zeppelin's machine would run as Zeppelin's account, {account}, not "
                "as {user}."
            ).format(account=account, user=user[:80]),
            _HOW_TO_ALLOW,
        )
    if backend not in (None, "yarn"):
        # Whether a backend of another package starts jobs as the profile's user is not known.
        raise RefusedError(
            _(
                "A job on the backend {backend} might run as Zeppelin's account, {account}, not "
                "as {user}."
            ).format(backend=backend, account=account, user=user[:80]),
            _HOW_TO_ALLOW,
        )
    if kerberos and not service:
        raise RefusedError(
            _(
                "The cluster requires Kerberos, and Zeppelin has no keytab with which it can act "
                "for {user}."
            ).format(user=user[:80]),
            _(
                "An administrator sets SUBMARINE_HADOOP_KEYTAB and SUBMARINE_HADOOP_PRINCIPAL on "
                "the page Interpreters."
            ),
        )
    if not _NAME.fullmatch(user):
        raise RefusedError(
            _("{user!r} is not a valid user name of the cluster.").format(user=user[:80]),
            _("Use ASCII letters, digits and . _ @ -."),
        )
    return user
