"""Translate the Java errors that the driver returns into one sentence each, by a table.

The first match applies. Of other errors, the first line is shown, never a stack trace.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from submarine_jobs.errors import (
    ALLOW_TO_ACT,
    IMPERSONATION_DENIED,
    NOT_ALLOWED_TO_ACT,
    ClusterError,
    RefusedError,
    SubmarineError,
)
from submarine_runtime.protocol import EndReason
from submarine_runtime.translation import _, gettext_noop


class JobRefusedError(RefusedError):
    """The cluster refused the job; has the end reason for the record."""

    reason = EndReason.SUBMIT_FAILED


class QueueRefusedError(JobRefusedError):
    """The queue refused the job."""

    reason = EndReason.QUEUE_REFUSED


class NeverFitsError(JobRefusedError):
    """The cluster never allocates containers of that size."""

    reason = EndReason.NEVER_FITS


_MODIFY_ACL = gettext_noop(
    "{0} may not end {1}: that requires the modify ACL of the job, which its owner gives with "
    "--share modify:{0}."
)
_ASK_OWNER = gettext_noop("Ask the owner of the job, or the operator.")


def modify_acl_error(user: str, application_id: str) -> RefusedError:
    """Return the error for a kill of another user's application without its modify ACL."""
    return RefusedError(_(_MODIFY_ACL).format(user, application_id), _(_ASK_OWNER))


class Refusal(NamedTuple):
    """A pattern in a Java error and what it means; ``{0}`` is the pattern's first group."""

    pattern: re.Pattern[str]
    error: type[SubmarineError]
    message: str
    fix: str


def _row(pattern: str, error: type[SubmarineError], message: str, fix: str) -> Refusal:
    return Refusal(re.compile(pattern, re.IGNORECASE | re.DOTALL), error, message, fix)


TABLE: tuple[Refusal, ...] = (
    _row(
        r"User (\S+) cannot perform operation MODIFY_APP on (application_\d+_\d+)",
        RefusedError,
        _MODIFY_ACL,
        _ASK_OWNER,
    ),
    _row(
        r"safe ?mode",
        ClusterError,
        gettext_noop("HDFS is in safe mode and accepts no writes."),
        gettext_noop("Wait until the NameNode leaves it, or ask the operator."),
    ),
    _row(
        r"submitted by user (\S+) to unknown queue: ?([^\s:]+)",
        QueueRefusedError,
        gettext_noop("There is no queue {1}."),
        gettext_noop("Choose one with --queue; `submarine doctor` lists them."),
    ),
    _row(
        r"queue ([\w.-]+) (?:is|has been) (STOPPED|DRAINING)|([\w.-]+) is STOPPED\. Cannot accept",
        QueueRefusedError,
        gettext_noop("The queue {0}{2} is stopped and accepts no jobs."),
        gettext_noop("Choose another queue with --queue."),
    ),
    _row(
        r"User (\S+) (?:cannot|does not have permission to) submit (?:applications|\S+) to "
        r"(?:the )?(?:leaf )?queue:? ?([\w.-]+)",
        QueueRefusedError,
        gettext_noop("User {0} may not submit to queue {1}."),
        gettext_noop("Choose another queue with --queue, or ask the operator for access."),
    ),
    _row(
        r"(?:leaf )?queue ([\w.-]+) already has (\d+) applications",
        QueueRefusedError,
        gettext_noop("The queue {0} already holds {1} applications, the maximum."),
        gettext_noop("Wait until some have ended, or choose another queue with --queue."),
    ),
    _row(
        r"is not a leaf queue|non-?leaf queue|submitted by user \S+ to (?:a )?non",
        QueueRefusedError,
        gettext_noop("That queue holds other queues and accepts no jobs itself."),
        gettext_noop("Name one of the queues below it with --queue."),
    ),
    _row(
        r"(?:yarn\.io|nvidia\.com)/gpu.{0,40}(?:is not defined|not found|unknown)|"
        r"Unknown resource.{0,40}gpu|ResourceNotFoundException",
        JobRefusedError,
        gettext_noop(
            "The resource type of GPUs is not defined in the client's Hadoop configuration."
        ),
        gettext_noop(
            "Put resource-types.xml of the cluster beside core-site.xml, or ask for no GPU."
        ),
    ),
    _row(
        r"Requested resource type=\[(?:yarn\.io|nvidia\.com)/gpu\].{0,400}?"
        r"maximum (?:allowed )?allocation=<[^>]*(?:yarn\.io|nvidia\.com)/gpu: (\d+)",
        NeverFitsError,
        gettext_noop("The job asks for more GPUs than a container may have here ({0})."),
        gettext_noop("Ask for fewer GPUs with --gpu."),
    ),
    _row(
        r"Requested resource type=\[memory-mb\].{0,400}?"
        r"maximum (?:allowed )?allocation=<memory:(\d+)",
        NeverFitsError,
        gettext_noop("The job asks for more memory than a container may have here ({0} MiB)."),
        gettext_noop("Ask for less with --memory."),
    ),
    _row(
        r"Requested resource type=\[vcores\].{0,400}?"
        r"maximum (?:allowed )?allocation=<[^>]*vCores:(\d+)",
        NeverFitsError,
        gettext_noop("The job asks for more virtual cores than a container may have here ({0})."),
        gettext_noop("Ask for fewer vcores."),
    ),
    _row(
        r"InvalidResourceRequestException|Invalid resource request",
        NeverFitsError,
        gettext_noop("The job asks for a larger container than the cluster gives."),
        gettext_noop("Ask for less memory, fewer vcores or fewer GPUs."),
    ),
    _row(
        r"AccessControlException[^\n]*?Permission denied: user=([^,]+), access=(\w+), "
        r'inode="([^"]+)"',
        JobRefusedError,
        gettext_noop("HDFS denies user {0} the permission {1} on {2}."),
        gettext_noop(
            "Choose a job root that you own, and see that your HDFS home directory exists."
        ),
    ),
    _row(
        r"Permission denied: user=([^,]+), access=(\w+), inode=\"([^\"]+)\"",
        JobRefusedError,
        gettext_noop("HDFS denies user {0} the permission {1} on {2}."),
        gettext_noop(
            "Choose a job root that you own, and see that your HDFS home directory exists."
        ),
    ),
    _row(
        r"(?:DSQuotaExceeded|NSQuotaExceeded|QuotaExceeded)",
        JobRefusedError,
        gettext_noop("The HDFS quota of your home directory is used up."),
        gettext_noop("Free space there or ask the operator for more."),
    ),
    _row(
        r"File does not exist: (\S+)|FileNotFoundException: (\S+)",
        JobRefusedError,
        gettext_noop("The file {0}{1} that the job needs does not exist."),
        gettext_noop("Check the sources of --localization."),
    ),
    _row(
        r"could only be written to 0 of the|There are 0 datanode",
        ClusterError,
        gettext_noop("HDFS has no DataNode that accepts data."),
        gettext_noop("Check the DataNodes: `submarine doctor`."),
    ),
    _row(
        IMPERSONATION_DENIED,
        JobRefusedError,
        NOT_ALLOWED_TO_ACT,
        ALLOW_TO_ACT,
    ),
    _row(
        r"Kerberos|GSSException|kinit|Login failure for user",
        ClusterError,
        gettext_noop("The cluster asks for a Kerberos ticket."),
        gettext_noop(
            "Get one with `submarine login` or kinit, or set keytab and principal; "
            "`submarine doctor` shows details."
        ),
    ),
    _row(
        r"(?:Call From|Failed on local).*?(?:to|destination host is:) \S*?:(\d+).*?"
        r"(?:ConnectException|Connection refused|failed on connection)",
        ClusterError,
        gettext_noop(
            "The cluster refuses connections on port {0}: ResourceManager or NameNode is down."
        ),
        gettext_noop("Check that both are up: `submarine doctor`."),
    ),
    _row(
        r"ConnectException|Connection refused|ConnectTimeout|NoRouteToHost|UnknownHost|"
        r"retries get failed|SocketTimeout",
        ClusterError,
        gettext_noop("ResourceManager or NameNode cannot be reached."),
        gettext_noop("Check that both are up: `submarine doctor`."),
    ),
)

_NOISE = re.compile(
    r"^(?:Failed to submit application, exception:|(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error):)\s*"
)


def translate(details: str) -> SubmarineError:
    """Return the error for the ``details`` of the driver."""
    for refusal in TABLE:
        match = refusal.pattern.search(details)
        if match:
            groups = [group or "" for group in match.groups()]
            return refusal.error(_(refusal.message).format(*groups), _(refusal.fix))
    return JobRefusedError(
        _("The cluster refused: {reason}.").format(reason=first_line(details)),
        _("See `submarine doctor`."),
    )


def first_line(details: str) -> str:
    """Return the first informative line of a Java error, without class names and stack."""
    for line in details.splitlines():
        text = line.strip()
        while True:
            shorter = _NOISE.sub("", text)
            if shorter == text:
                break
            text = shorter
        if text and not text.startswith("at "):
            return text[:300].rstrip(".")
    return _("no reason given")
