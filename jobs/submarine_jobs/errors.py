"""Errors with a message for users: one sentence on the error, and one on its fix.

The class determines the exit code of the command line: 1 job failed, 2 usage, 3 cluster.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from submarine_jobs.access import JobHandle


#: First part of the fix for a missing cluster configuration.
NAME_CLUSTER = gettext_noop(
    "Set HADOOP_CONF_DIR, or hadoop_conf_dir in submarine.toml, to the directory of the cluster's "
    "Hadoop configuration"
)
#: Hadoop's refusal of a proxy user. The groups are the first component of the service's principal,
#: which not all interfaces name completely, and the user.
IMPERSONATION_DENIED = (
    r"User: ?([^\s@/]{1,100})\S{0,300} is not allowed to impersonate ([^\s\"',;]{1,200})"
)
NOT_ALLOWED_TO_ACT = gettext_noop("The cluster does not allow {0} to act for {1}.")
ALLOW_TO_ACT = gettext_noop(
    "Its operator allows it with hadoop.proxyuser.NAME.hosts and .users (or .groups) in the "
    "core-site.xml of the NameNode and the ResourceManager."
)
#: Why MIT's library or the KDC refuses a clock: it is off, and the one for a ticket in the future.
WRONG_CLOCK = r"[Cc]lock skew too great|[Tt]icket not yet valid"

#: Fix for a certificate that is not accepted.
TRUST_CA = gettext_noop(
    "Set ca_file to the certificates (PEM) of the authority that signs those of the cluster, or "
    "correct the truststore in ssl-client.xml."
)


class SubmarineError(Exception):
    """Base of all errors for users.

    Parameters
    ----------
    message
        The error and its place.
    fix
        How to fix it; shown after the message.

    Attributes
    ----------
    job
        The job that the command submitted or waited for; None if there is none.
    """

    exit_code = 1
    job: JobHandle | None = None

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message} {fix}".strip())
        self.message = message
        self.fix = fix


class UsageError(SubmarineError):
    """The request is invalid: an option, a name, a value. Nothing was submitted."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file or an environment variable has an invalid value."""


class JobNotFoundError(UsageError):
    """No job of that id (or beginning of an id) is known here or in the job root."""


class ClusterError(SubmarineError):
    """The cluster, its file system or the driver cannot be reached or does not answer in time."""

    exit_code = 3


class NotSubmittedError(ClusterError):
    """The submission failed before the cluster was called: nothing was submitted."""


class NoClusterError(ClusterError):
    """No cluster is configured; the message lists the alternatives."""


def no_cluster() -> NoClusterError:
    """Return the error for a command that needs a cluster, with all alternatives."""
    return NoClusterError(
        _("No cluster is configured."),
        _(
            "{advice}; or start a cluster on this machine with `submarine minicluster "
            "start` and add `--profile minicluster`; or run without a cluster: `--backend "
            "local`."
        ).format(advice=_(NAME_CLUSTER)),
    )


class RefusedError(SubmarineError):
    """The cluster has refused the request (queue, size, permission)."""

    exit_code = 2


def impersonation_refusal(text: str) -> tuple[str, str] | None:
    """Return message and fix if ``text`` is Hadoop's refusal of a proxy user, else None."""
    found = re.search(IMPERSONATION_DENIED, text)
    if found is None:
        return None
    service, user = found.groups()
    return _(NOT_ALLOWED_TO_ACT).format(service, user.rstrip(".")), _(ALLOW_TO_ACT)


class StorageError(ClusterError):
    """The file system of the job directory has refused a request or failed."""


class NoAnswerError(StorageError):
    """The file system has not answered in time."""


class NoAccessError(StorageError):
    """The file system denies the permission."""


class AclsDisabledError(StorageError):
    """The file system keeps no ACLs (``dfs.namenode.acls.enabled`` is false)."""


class TicketError(StorageError):
    """There is no valid Kerberos ticket, or the cluster does not accept it."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(
            _("The cluster requires a Kerberos ticket: {reason}.").format(
                reason=reason.rstrip(".")
            ),
            fix
            or clock_fix(reason)
            or _(
                "Get one with `submarine login` or kinit, or set keytab and principal; "
                "`submarine doctor` shows details."
            ),
        )


def clock_fix(reason: str) -> str:
    """Return the fix if Kerberos refuses because of this machine's clock; else an empty text."""
    if not re.search(WRONG_CLOCK, reason):
        return ""
    return _(
        "Set the clock of this machine (NTP): it differs from that of the KDC by more than "
        "Kerberos accepts, which is 5 minutes by default; `submarine doctor` shows by how much."
    )


class NoRoomError(StorageError):
    """The file system is full: a quota or the disk is used up."""


class JobFailedError(SubmarineError):
    """A job has not succeeded, and its success was required."""

    exit_code = 1


@contextlib.contextmanager
def with_job(job: JobHandle) -> Iterator[None]:
    """Set the attribute ``job`` of each exception that leaves the block, interrupts included."""
    try:
        yield
    except BaseException as error:
        if job_of(error) is None:
            error.__dict__["job"] = job
        raise


def job_of(error: BaseException) -> JobHandle | None:
    """The job that ``with_job`` has set; None if there is none."""
    job: JobHandle | None = getattr(error, "job", None)
    return job
