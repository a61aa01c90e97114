"""As whom a paragraph's job runs on the cluster; a refusal where nobody said.

Zeppelin says who runs a paragraph. On a cluster with simple authentication the job runs as that
user, whom this process names to Hadoop in each request, so that it acts for several users at the
same time; where that cannot be, it is refused, unless the operator allowed that everybody's jobs
run as the account of Zeppelin. Checks no password: Zeppelin did.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from pathlib import Path

from submarine_jobs.errors import RefusedError
from submarine_jobs.model import Profile
from submarine_zeppelin.interface import flag
from submarine_zeppelin.thrift import ANONYMOUS

SERVICE_USER = "submarine.allow.service.user"
#: It becomes a part of paths and of addresses.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")
_WAYS = (
    f"An administrator may set {SERVICE_USER} to true on the page Interpreters: then everybody's "
    "jobs run as that account."
)


#: Below the state directory: what this machine knows of each user's jobs.
_USERS = "users"


def state_dir_of(user: str, common: Path) -> Path:
    """Where a user's own index of jobs lies, so that nobody lists or finds another's.

    Parameters
    ----------
    common
        The state directory of Zeppelin's account.
    """
    return common / _USERS / user


def common_state_dir(profile: Profile) -> Path:
    """The state directory of Zeppelin's account, of a profile that may be a user's."""
    own = profile.state_dir
    common = own.parent.parent
    return common if profile.user and own == state_dir_of(profile.user, common) else own


def cluster_user(
    user: str,
    properties: Mapping[str, str],
    *,
    backend: str | None,
    kerberos: bool = False,
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
            "The cluster asks for Kerberos, which is not in this release: nothing can run there as "
            f"{user[:80]}.",
            "Use a cluster with simple authentication.",
        )
    if not _NAME.fullmatch(user):
        raise RefusedError(
            f"{user[:80]!r} cannot be a user of the cluster.",
            "It takes ASCII letters, digits and . _ @ -, such as ada.",
        )
    return user
