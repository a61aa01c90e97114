"""The errors that a person may see; each message is one sentence: what, where, what instead.

The command line's exit codes hang on the classes here: 1 job failed, 2 usage, 3 cluster.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from submarine_jobs.access import JobHandle


#: How a cluster is named; the beginning of a fix.
NAME_CLUSTER = gettext_noop(
    "Set HADOOP_CONF_DIR, or hadoop_conf_dir in submarine.toml, to the directory of the cluster's "
    "Hadoop configuration"
)


class SubmarineError(Exception):
    """Base of all errors meant for a person.

    Parameters
    ----------
    message
        What is wrong and where.
    fix
        What would be right; shown after the message.

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
    """The request itself is wrong: an option, a name, a value. Nothing was submitted."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file or environment variable holds something impossible."""


class JobNotFoundError(UsageError):
    """No job of that id (or beginning of an id) is known here or in the job root."""


class ClusterError(SubmarineError):
    """The cluster, its file system or the driver cannot be reached or does not answer in time."""

    exit_code = 3


class NotSubmittedError(ClusterError):
    """What a submit needs is not there, and the cluster was never asked: nothing was submitted."""


class NoClusterError(ClusterError):
    """No cluster is configured; the message names the ways on."""


def no_cluster() -> NoClusterError:
    """The error of what needs a cluster where none is configured, with all that can be done."""
    return NoClusterError(
        _("No cluster is configured."),
        _(
            "{advice}; or start a cluster on this machine with `submarine minicluster "
            "start` and add `--profile minicluster`; or run without a cluster: `--backend "
            "local`."
        ).format(advice=_(NAME_CLUSTER)),
    )


class RefusedError(SubmarineError):
    """The cluster answered, and its answer was no (queue, size, permission)."""

    exit_code = 2


class StorageError(ClusterError):
    """The job directory's file system refused or failed."""


class NoAnswerError(StorageError):
    """It has not answered in time."""


class NoAccessError(StorageError):
    """It does not let this user do that."""


class NoRoomError(StorageError):
    """It takes nothing more: a quota, or the disk, is used up."""


class JobFailedError(SubmarineError):
    """A job that was waited for did not succeed."""

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
