"""Find out from YARN's diagnostics why an application ended or waits, by tables of patterns.

The result is used if the job itself has published no record. The first match applies. The texts
were recorded from Hadoop 3.3 and 3.5 and skein 0.8.2.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from submarine_runtime.protocol import NO_SPACE_CODE, STORE_UNAVAILABLE_CODE, EndReason
from submarine_runtime.translation import _, gettext_noop
from submarine_runtime.yarn import GPU_RESOURCES

_MAX_DETAIL = 300


class Row(NamedTuple):
    """A pattern in the diagnostics, its end reason, and a sentence with the pattern's groups."""

    pattern: re.Pattern[str]
    reason: EndReason
    detail: str


def _row(pattern: str, reason: EndReason, detail: str) -> Row:
    return Row(re.compile(pattern, re.IGNORECASE | re.DOTALL), reason, detail)


_USED = r"Current usage: ([\d.]+ [KMGT]?B) of ([\d.]+ [KMGT]?B) physical memory used"
ENDS: tuple[Row, ...] = (
    _row(
        # The text of ``YarnBackend.stop``, in case the job directory did not answer.
        r"cancelled by ([\w.@-]{1,80}) with Submarine",
        EndReason.CANCELLED,
        gettext_noop("Cancelled by {0}."),
    ),
    _row(
        r"beyond (?:the '?physical'? memory limit|physical memory limits).*?" + _USED,
        EndReason.OUT_OF_MEMORY,
        gettext_noop("The container used {0} of {1}."),
    ),
    _row(
        r"exitCode: -104\b|OOM[- ]?kill|Out of memory:|KILLED_EXCEEDED_PMEM|"
        r"^Exceeded physical memory limit|physical memory.{0,40}exceeded",
        EndReason.OUT_OF_MEMORY,
        gettext_noop("YARN ended the container for using more memory than it was given."),
    ),
    _row(
        r"beyond (?:the '?virtual'? memory limit|virtual memory limits)|exitCode: -103\b",
        EndReason.OUT_OF_MEMORY,
        gettext_noop(
            "YARN ended the container for using more virtual memory than the cluster allows "
            "(yarn.nodemanager.vmem-check-enabled)."
        ),
    ),
    _row(
        r"exitCode: -102\b|preempted by scheduler|Container preempted",
        EndReason.PREEMPTED,
        gettext_noop("The scheduler took the container back."),
    ),
    _row(
        r"exitCode: -100\b|released on a \*lost\* node|lost node",
        EndReason.NODE_LOST,
        gettext_noop("The container's node was lost."),
    ),
    _row(
        r"exitCode: -101\b|No space left on device|DiskErrorException|Disks? failed",
        EndReason.DISK_FULL,
        gettext_noop("The node's disk failed or was full."),
    ),
    _row(
        r"killed by user ([^\s,]+?)(?:\.?$| at [\w.:-]+| with diagnostic message)",
        EndReason.KILLED_ON_CLUSTER,
        gettext_noop("Killed by user {0}."),
    ),
    _row(
        r"Application killed by a ?timeout|exceeded its lifetime|"
        r"killed by ResourceManager as it exceeded its lifetime",
        EndReason.KILLED_ON_CLUSTER,
        gettext_noop("The cluster's limit on an application's lifetime ended it."),
    ),
    _row(
        r"exitCode: -1000.*?((?:java|org)[\w.]*\.(?:ConnectException|ConnectTimeoutException|"
        r"SocketTimeoutException|NoRouteToHostException|EOFException|StandbyException|"
        r"SafeModeException|RetriableException|BlockMissingException|UnknownHostException))\b",
        EndReason.HDFS_UNAVAILABLE,
        gettext_noop(
            "YARN could not localize the files of the job, because HDFS did not answer: {0}."
        ),
    ),
    _row(
        r"exitCode: -1000.*?(?:File does not exist: ([^\n]+)|"
        r"(Resource \S+ changed on src filesystem)|([A-Za-z.]*Exception: [^\n]{0,200}))",
        EndReason.LOCALISATION_FAILED,
        "{0}{1}{2}",
    ),
    _row(
        r"exitCode: -1000\b|Failed to download resource",
        EndReason.LOCALISATION_FAILED,
        gettext_noop("YARN could not localize a file on the node."),
    ),
    _row(
        r"Invalid resource request|InvalidResourceRequestException",
        EndReason.NEVER_FITS,
        gettext_noop("The request is larger than any node allows."),
    ),
    _row(
        r"(?:unknown queue:? ?([\w.-]*)|queue ([\w.-]+) is STOPPED)",
        EndReason.QUEUE_REFUSED,
        gettext_noop("The queue {0}{1} does not exist or accepts no jobs."),
    ),
    _row(
        r"(?:cannot|does not have permission to) submit applications? to (?:the )?"
        r"queue:? ?([\w.-]+)",
        EndReason.QUEUE_REFUSED,
        gettext_noop("You may not submit to queue {0}."),
    ),
    _row(
        r"already has (\d+) applications",
        EndReason.QUEUE_REFUSED,
        gettext_noop("The queue already holds {0} applications, the maximum."),
    ),
    _row(
        r"exit ?code:? (?:126|127)\b",
        EndReason.LAUNCH_FAILED,
        gettext_noop(
            "The Python that should start the job does not exist or does not run on that node."
        ),
    ),
    _row(
        rf"driver failed with exit code {NO_SPACE_CODE}\b",
        EndReason.JOB_DIRECTORY_FULL,
        gettext_noop(
            "The job directory was full, so the agent could not write the record: "
            "application.driver.log of the YARN log names the exceeded quota."
        ),
    ),
    _row(
        rf"driver failed with exit code {STORE_UNAVAILABLE_CODE}\b",
        EndReason.HDFS_UNAVAILABLE,
        gettext_noop(
            "The job waited for HDFS for as long as the setting hdfs_wait_minutes allows."
        ),
    ),
    _row(
        r"driver failed with exit code (\d+)",
        EndReason.AGENT_LOST,
        gettext_noop(
            "The agent ended with exit code {0} and left no record: application.driver.log of "
            "the YARN log says why."
        ),
    ),
    _row(
        r"Failure in service",
        EndReason.AGENT_LOST,
        gettext_noop("The program's container ended and the agent left no record."),
    ),
    _row(
        r"ApplicationMaster for attempt \S+ timed out",
        EndReason.MASTER_LOST,
        gettext_noop("The application master sent no heartbeat in time."),
    ),
    _row(
        r"shutdown by external signal",
        EndReason.MASTER_LOST,
        gettext_noop(
            "The application master was ended by a signal: killed by an operator, or by YARN "
            "because the container used more memory than it was given."
        ),
    ),
    _row(
        r"AM Container for \S+ exited with\s+exitCode: (-?\d+)",
        EndReason.MASTER_LOST,
        gettext_noop("The application master ended with exit code {0}."),
    ),
    _row(
        r"Unexpected error in application master.{0,20}Token .{0,400}(?:has expired|in cache)",
        EndReason.MASTER_LOST,
        gettext_noop(
            "The application master was lost, and YARN cannot start another one: the delegation "
            "tokens of the application have expired. `submarine rerun --resume` continues from "
            "the checkpoints."
        ),
    ),
    _row(
        r"Unexpected error in application master|Failure in container allocator",
        EndReason.MASTER_LOST,
        gettext_noop("The application master failed."),
    ),
)

WAITS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), sentence)
    for pattern, sentence in (
        (
            r"Queue's AM resource limit exceeded.*?AM Resource Request = <([^>]*)>.*?"
            r"Queue Resource Limit for AM = <([^>]*)>.*?Queue AM Resource Usage = <([^>]*)>",
            "queue {queue}{short}",
        ),
        (
            r"User's AM resource limit exceeded",
            gettext_noop("queue {queue}: your masters already hold the share that one user's may"),
        ),
        (
            r"AM resource limit exceeded",
            gettext_noop("queue {queue}: its share for application masters is used"),
        ),
        (
            r"cluster resource is empty",
            gettext_noop("the cluster has no running node at present"),
        ),
        (
            r"waiting for resources to be assigned for AM.*?used capacity = ([\d.]+) %"
            r".*?max(?:imum)? capacity = ([\d.]+) %",
            gettext_noop(
                "queue {queue}: waiting for free resources; {0} % of the cluster is used by "
                "this queue, which may use {1} %"
            ),
        ),
        (
            r"waiting for resources to be assigned for AM",
            gettext_noop("queue {queue}: waiting for free resources"),
        ),
        (
            r"launch the AM|AM container to be launched|waiting for AM",
            gettext_noop("the container is allocated; waiting for its node to take it"),
        ),
        (
            r"not yet activated",
            gettext_noop("queue {queue}: waiting for its turn"),
        ),
    )
)


#: The master's container was given to its node, which localizes the files first.
_LAUNCHED = re.compile(r"AM container is launched", re.IGNORECASE)


def is_launched(diagnostics: str) -> bool:
    """Return whether the master of a waiting application was given to its node."""
    return _LAUNCHED.search(diagnostics) is not None


def end_reason(state: str, final_status: str, diagnostics: str) -> tuple[EndReason, str]:
    """Return end reason and sentence of an application in state FINISHED, FAILED or KILLED."""
    if final_status == "SUCCEEDED":
        return EndReason.SUCCEEDED, ""
    for row in ENDS:
        match = row.pattern.search(diagnostics)
        if match:
            groups = [(group or "").strip() for group in match.groups()]
            return row.reason, _(row.detail).format(*groups)[:_MAX_DETAIL]
    detail = " ".join(diagnostics.split())[:_MAX_DETAIL]
    if state == "KILLED" or final_status == "KILLED":
        return EndReason.KILLED_ON_CLUSTER, detail
    return EndReason.MASTER_LOST, detail


def wait_reason(diagnostics: str, queue: str) -> str:
    """Return a sentence with the reason why an application waits."""
    for pattern, sentence in WAITS:
        match = pattern.search(diagnostics)
        if match:
            groups = [group or "" for group in match.groups()]
            return _(sentence).format(*groups, queue=queue, short=_shortage(*groups[:3]))
    return _("queue {queue}: submitted, not yet looked at").format(queue=queue)


#: Resource name of the scheduler -> displayed unit; the scarcest resource first.
_UNITS = (
    *((name, "GPUs") for name in GPU_RESOURCES),
    *(("memory", "MiB"), ("vCores", "vcores")),
)


def _shortage(request: str = "", limit: str = "", used: str = "") -> str:
    """Return `` has 0 of 4 GPUs free for masters; this one needs 3``, for the first shortage."""
    for kind, unit in _UNITS:
        needs, maximum, held = (_amount(kind, text) for text in (request, limit, used))
        if needs > maximum - held:
            free = _("{free} of {maximum} {unit} free for masters").format(
                free=max(0, maximum - held), maximum=maximum, unit=unit
            )
            return _(" has {free}; this one needs {needs}").format(free=free, needs=needs)
    return _(": its share for application masters is used")


def _amount(kind: str, resource: str) -> int:
    match = re.search(re.escape(kind) + r": ?(\d+)", resource)
    return int(match[1]) if match else 0
