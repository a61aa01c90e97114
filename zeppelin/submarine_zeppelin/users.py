"""As whom a paragraph's job runs on the cluster; a refusal where nobody said.

Zeppelin says who runs a paragraph. On a cluster with simple authentication the job runs as that
user, named to Hadoop by this process; where that cannot be, it is refused, unless the operator
allowed that everybody's jobs run as the account of Zeppelin. Checks no password: Zeppelin did.
"""

from __future__ import annotations

import getpass
import re
import threading
from collections.abc import Mapping

from submarine_jobs.errors import RefusedError
from submarine_zeppelin.properties import flag
from submarine_zeppelin.serving.conversion import ANONYMOUS

SERVICE_USER = "submarine.allow.service.user"
#: It becomes a part of paths and of addresses.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")
_WAYS = (
    f"An administrator may set {SERVICE_USER} to true on the page Interpreters: then everybody's "
    "jobs run as that account."
)


class ActingUser:
    """The one user of the cluster as whom this process acts, once it does.

    Hadoop's client takes the user of simple authentication from the environment of its process,
    so that a process that has acted for one user can never act for another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name: str | None = None

    def become(self, name: str) -> None:
        """Act as a user from now on.

        Raises
        ------
        RefusedError
            If this process acts as another one.
        """
        with self._lock:
            if self._name is None:
                self._name = name
            bound = self._name
        if bound != name:
            raise RefusedError(
                f"This interpreter's process acts as {bound} on the cluster and cannot act as "
                f"{name} too.",
                "Let the interpreter be instantiated per user, in isolated processes (page "
                "Interpreters), so that each user has one.",
            )


_acting = ActingUser()


def cluster_user(
    user: str,
    properties: Mapping[str, str],
    *,
    backend: str | None,
    kerberos: bool = False,
    acting: ActingUser = _acting,
) -> str | None:
    """As whom a job, or a look at jobs, is to be made: the ``user`` of a profile.

    Parameters
    ----------
    user
        Who runs the paragraph (``Context.user``).
    properties
        The interpreter's settings.
    backend
        ``local`` or ``yarn``; a process of this machine is always its account's.
    kerberos
        Whether the cluster wants Kerberos, where no name alone is believed.
    acting
        Who this process acts as; the default is the one of the process.

    Returns
    -------
    str or None
        None: the account of Zeppelin, or the user whom its profile names.

    Raises
    ------
    RefusedError
        If it is to be nobody.
    """
    account = getpass.getuser()
    if flag(properties, SERVICE_USER):
        return None
    if user == account:
        # Nothing is said to Hadoop, but another must not come after.
        acting.become(user)
        return None
    if not user or user == ANONYMOUS:
        raise RefusedError(
            "Zeppelin did not say who you are (it lets everybody in), and so the job would run "
            f"as its account, {account}.",
            _WAYS,
        )
    if backend == "local":
        raise RefusedError(
            f"A job on Zeppelin's own machine would run as its account, {account}, not as "
            f"{user[:80]}.",
            _WAYS,
        )
    if kerberos:
        raise RefusedError(
            f"The cluster asks for Kerberos, and a job of {user[:80]} would run as Zeppelin's "
            f"account, {account}.",
            _WAYS,
        )
    if not _NAME.fullmatch(user):
        raise RefusedError(
            f"{user[:80]!r} cannot be a user of the cluster.",
            "It takes ASCII letters, digits and . _ @ -, such as ada.",
        )
    acting.become(user)
    return user
