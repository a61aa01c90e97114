"""Applications, their attempts and their containers in the ResourceManager's answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Iterator, Mapping, Sequence

from submarine_runtime.translation import _
from submarine_runtime.yarn.fields import (
    GPU,
    MAX_NAME,
    NOTHING,
    Size,
    as_int,
    as_object,
    as_objects,
    as_seconds,
    as_text,
    objects_in,
    parse_size,
    printable,
    total_size,
)

#: Tag of all applications of Submarine, and YARN's types of these applications.
TAG, TYPES = "submarine", "skein,SPARK"
#: Prefix of the application tag that names the job.
JOB_TAG = "submarine_job:"
ACTIVE_STATES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
ENDED_STATES = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class ContainerRequest:
    """Missing containers: their number and size, and where they may be placed.

    Parameters
    ----------
    memory
        MiB of the whole container.
    nodes, racks
        Allowed hosts and racks; empty: all.
    master
        Whether it is the application master, which has a separate share of the queue.
    """

    count: int
    memory: int
    vcores: int = 1
    gpus: int = 0
    label: str = ""
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    master: bool = False

    @property
    def size(self) -> Size:
        """Size of one container."""
        return Size(self.memory, self.vcores, self.gpus)


class Application:
    """An application. Each field is read and checked when it is used: lists are long.

    Parameters
    ----------
    raw
        Its object in a response.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw
        self.id = as_text(raw.get("id"))
        self.state = as_text(raw.get("state"))
        self.user = printable(raw.get("user"))

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ACTIVE_STATES

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.state in ENDED_STATES

    @property
    def final_status(self) -> str:
        """``SUCCEEDED``, ``FAILED``, ``KILLED``, or ``UNDEFINED`` before its end."""
        return as_text(self._raw.get("finalStatus"))

    @property
    def name(self) -> str:
        """Name of its submitter's choice."""
        return printable(self._raw.get("name"))

    @property
    def type(self) -> str:
        """Type: ``skein`` or ``SPARK``."""
        return as_text(self._raw.get("applicationType"))

    @property
    def queue(self) -> str:
        """Path of its queue; the short name in older versions."""
        return printable(self._raw.get("queue"), MAX_NAME)

    @property
    def diagnostics(self) -> str:
        """Text of YARN on its state or end, of any length."""
        return as_text(self._raw.get("diagnostics"))

    @property
    def tags(self) -> Sequence[str]:
        """Its tags, in lower case."""
        return as_text(self._raw.get("applicationTags")).split(",")

    @property
    def job_id(self) -> str:
        """Job id in its tags; empty: it is not one of our jobs."""
        for tag in self.tags:
            if tag.startswith(JOB_TAG) and len(tag) > len(JOB_TAG):
                return printable(tag[len(JOB_TAG) :])
        return ""

    @property
    def label(self) -> str:
        """``job digits-20261120-7f3a``, or ``application "name" of ada``."""
        job = self.job_id
        if job:
            return _("job {job}").format(job=job)
        return _('application "{name}" of {user}').format(name=self.name, user=self.user)

    @property
    def started(self) -> float:
        """Time of its submission in seconds since the epoch; 0 if unknown."""
        return as_seconds(self._raw.get("startedTime")) or 0.0

    @property
    def launched(self) -> float | None:
        """Time at which its first master was launched."""
        return as_seconds(self._raw.get("launchTime"))

    @property
    def finished(self) -> float | None:
        """Time of its end."""
        return as_seconds(self._raw.get("finishedTime"))

    @property
    def usage(self) -> dict[str, int]:
        """Memory in MiB, vcores and GPUs, each times seconds."""
        entries = objects_in(self._raw, "resourceSecondsMap", "entry")
        gpus = next((entry.get("value") for entry in entries if entry.get("key") == GPU), 0)
        return {
            "memory_seconds": as_int(self._raw.get("memorySeconds")),
            "vcore_seconds": as_int(self._raw.get("vcoreSeconds")),
            "gpu_seconds": as_int(gpus),
        }

    @property
    def running_containers(self) -> int:
        """Number of its containers, with the master's."""
        return as_int(self._raw.get("runningContainers"))

    @property
    def preempted_masters(self) -> int:
        """Number of its masters that were pre-empted."""
        return as_int(self._raw.get("numAMContainerPreempted"))

    @property
    def preempted_containers(self) -> int:
        """Number of its other containers that were pre-empted."""
        return as_int(self._raw.get("numNonAMContainerPreempted"))

    @property
    def master_host(self) -> str:
        """Host of its master; empty: unknown."""
        return as_text(self._raw.get("amHostHttpAddress")).partition(":")[0]

    @property
    def master_log(self) -> str:
        """URL of its master's log; empty: unknown."""
        return _web_address(self._raw.get("amContainerLogs"))

    @property
    def master_container(self) -> str:
        """Id of its master's container; empty: unknown."""
        log = as_text(self._raw.get("amContainerLogs"))
        return log.partition("/containerlogs/")[2].partition("/")[0]

    @property
    def tracking_url(self) -> str:
        """URL of its own page; empty: unknown."""
        return _web_address(self._raw.get("trackingUrl"))

    @cached_property
    def used(self) -> Size:
        """Resources in use."""
        parts = self._partitions
        if parts:
            return total_size(parse_size(part.get("used")) for part in parts)
        return Size(as_int(self._raw.get("allocatedMB")), as_int(self._raw.get("allocatedVCores")))

    @cached_property
    def reserved(self) -> Size:
        """Resources that the scheduler reserves for it."""
        parts = self._partitions
        if parts:
            return total_size(parse_size(part.get("reserved")) for part in parts)
        return Size(as_int(self._raw.get("reservedMB")), as_int(self._raw.get("reservedVCores")))

    @property
    def used_gpus(self) -> dict[str, int]:
        """GPUs in use by node label; the key of nodes without label is empty."""
        return {
            printable(part.get("partitionName")): parse_size(part.get("used")).gpus
            for part in self._partitions
        }

    @property
    def waits_for_resources(self) -> bool:
        """Whether it has pending requests, as far as the scheduler reports them."""
        return any(parse_size(part.get("pending")) != NOTHING for part in self._partitions)

    @property
    def _partitions(self) -> Sequence[Mapping[str, Any]]:
        return objects_in(self._raw, "resourceInfo", "resourceUsagesByPartition")

    @property
    def requests(self) -> list[ContainerRequest]:
        """Its pending container requests, one entry for each size and label."""
        counted: dict[tuple[Size, str], int] = {}
        for entry in as_objects(self._raw.get("resourceRequests")):
            if entry.get("resourceName") == "*":
                label = as_text(entry.get("nodeLabelExpression"))
                kind = parse_size(entry.get("capability")), label
                counted[kind] = counted.get(kind, 0) + as_int(entry.get("numContainers"))
        master = self.state == "ACCEPTED"
        return [
            ContainerRequest(count, *size, label=label, master=master)
            for (size, label), count in counted.items()
        ]


def applications_of(answer: Any) -> list[Application]:
    """Return the applications of an answer to ``/apps``; a list of them is accepted too."""
    if isinstance(answer, list):
        return [one for one in answer if isinstance(one, Application)]
    return [Application(raw) for raw in objects_in(answer, "apps", "app")]


def application_of(answer: Any) -> Application | None:
    """Return the application of an answer to ``/apps/<id>``; None if there is none."""
    found = as_object(answer).get("app")
    return Application(found) if isinstance(found, dict) else None


def attempt_diagnostics(answer: Any) -> Iterator[str]:
    """Yield the diagnostics of each attempt of an answer to ``/apps/<id>/appattempts``."""
    for attempt in objects_in(answer, "appAttempts", "appAttempt"):
        yield as_text(attempt.get("diagnosticsInfo"))


@dataclass(frozen=True)
class Container:
    """A container of an attempt.

    Parameters
    ----------
    node
        ``host:port`` of its NodeManager.
    started
        When YARN granted it, in seconds since the epoch; None: unknown.
    state
        Such as ``RUNNING`` or ``COMPLETE``.
    """

    id: str
    node: str
    started: float | None
    state: str = ""


def containers_of(answer: Any) -> list[Container]:
    """Return the containers of an answer to ``/apps/<id>/appattempts/<id>/containers``."""
    return [
        Container(
            as_text(raw.get("containerId")),
            printable(raw.get("nodeId"), MAX_NAME),
            as_seconds(raw.get("startedTime")),
            as_text(raw.get("containerState")),
        )
        for raw in objects_in(answer, "container")
    ]


def _web_address(raw: Any) -> str:
    text = as_text(raw)
    return text if text.startswith(("http://", "https://")) else ""
