"""The job record: the known state of a job at one time, and finally its result.

The same form is used by ``GET /v1/status`` of a running agent, ``record.json`` of an ended job,
``submarine show --json`` and the MIME bundle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.serialization import PROTOCOL_VERSION, to_json
from submarine_runtime.protocol.states import State

#: Names of phases. ``queue`` ends when the container of the application master is on its node;
#: ``master_start`` is from then to the start of the coordinator, or of the agent if a single task
#: runs in that container; ``containers`` is the wait of a distributed job for its other containers.
PHASES = (
    *("upload", "queue", "master_start", "containers", "localizing"),
    *("start", "first_line", "run", "save"),
)
#: Kind of the coordinator's event: YARN has localized the files of all tasks of the gang.
LOCALIZED = "localized"


@dataclass
class Phase:
    """One period of a job; times are seconds since the epoch (UTC).

    The name is one of ``PHASES``.
    """

    name: str
    start: float
    end: float | None = None


@dataclass
class Event:
    """A change of state, or another fact for the job's history.

    ``seq`` counts from 0 within one writer (``client``, ``agent``, or ``coordinator-1`` for the
    coordinator in the first attempt of its application). ``kind`` is ``state`` or a short word
    such as ``claimed``, ``shipped``, ``warning``, ``cancel_requested``, ``task`` (``data["task"]``
    is the task's record), ``gang``, ``restart``.
    """

    seq: int
    time: float
    kind: str
    writer: str
    state: State | None = None
    reason: EndReason | None = None
    detail: str = ""
    task: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class TaskRecord:
    """One task of a job; memory in MiB, times in seconds since the epoch.

    Parameters
    ----------
    gpus
        Devices of the container: ``GPU-<uuid>`` if the driver reports it, else their numbers.
    gpu_percent, gpu_memory
        Mean utilisation (0 to 100) and memory (MiB) over the task's devices at the last sample.
    restarts
        How often this task was restarted after a fault, in place or with its gang.
    reason, detail
        Why its last attempt ended; None and empty while it runs.
    network
        Interface and address that the framework was configured to use, ``eth0 10.0.0.7``.
    """

    task: str
    role: str
    index: int
    epoch: int = 1
    attempt: int = 1
    state: State = State.PENDING
    container_id: str | None = None
    host: str | None = None
    pid: int | None = None
    started: float | None = None
    finished: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    progress: float | None = None
    gpus: list[str] = field(default_factory=list)
    memory_now: float | None = None
    memory_peak: float | None = None
    cpu_seconds: float | None = None
    log_url: str | None = None
    gpu_percent: float | None = None
    gpu_memory: float | None = None
    restarts: int = 0
    reason: EndReason | None = None
    detail: str = ""
    network: str | None = None


@dataclass
class Output:
    """A file of the job directory that the job saved: relative path, size in bytes."""

    path: str
    size: int


@dataclass
class SavedOutput:
    """A published output of ``--save-output``: name, URI of its directory, files, bytes."""

    name: str
    uri: str
    files: int
    bytes: int


@dataclass
class JobRecord:
    """The state of a job.

    Parameters
    ----------
    resources
        ``requested``: role -> {memory (MiB), vcores, gpus, overhead (MiB)};
        ``used``: memory_peak (MiB), cpu_seconds, and from YARN memory_seconds, vcore_seconds.
    logs
        ``"worker:0/e1-a1/stdout"`` -> length in bytes.
    links
        Label -> URL: the application's YARN page, its log page, the user's quicklinks.
    missing
        What is known to be absent, one sentence each (the end of a log that was not shipped).
    behind
        Seconds by which a view from shipped data may lag; None for live or final data.
    last_known
        Whether the state could not be requested, so that the job may have changed since, or ended.
    epoch
        Number of the gang's (re)start, from 1.
    pending
        Why the job waits, one sentence; empty if it does not.
    warnings
        What its owner must know of a job that may have succeeded, one sentence each.
    workflow, workflow_run, workflow_node
        Origin of the job if a workflow started it; otherwise empty.
    notes
        Remarks on the request, one sentence each (a path that the program writes by itself).
    hints
        What the owner can improve, one sentence each (memory that was requested and not used, an
        idle GPU).
    """

    job_id: str
    name: str
    state: State
    version: int = PROTOCOL_VERSION
    user: str = ""
    backend: str = ""
    job_dir: str = ""
    queue: str | None = None
    application_id: str | None = None
    created: float | None = None
    finished: float | None = None
    reason: EndReason | None = None
    detail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    progress: float | None = None
    phases: list[Phase] = field(default_factory=list)
    tasks: list[TaskRecord] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    failure: Failure | None = None
    resources: dict[str, Any] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    logs: dict[str, int] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    behind: float | None = None
    last_known: bool = False
    written_by: str = ""
    epoch: int = 1
    pending: str = ""
    hints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    workflow: str = ""
    workflow_run: str = ""
    workflow_node: str = ""
    saved_outputs: list[SavedOutput] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; enum members become their values."""
        plain: dict[str, Any] = to_json(self)
        return plain


@dataclass
class TracebackFrame:
    """One frame of a failed program; ``cell`` and ``cell_line`` are set if it is in a cell."""

    file: str
    line: int
    function: str = ""
    code: str = ""
    cell: str | None = None
    cell_id: str | None = None
    cell_line: int | None = None


@dataclass
class Failure:
    """The exception that ended a program; the innermost frame is the last, as Python prints it.

    Parameters
    ----------
    time
        When it was raised, in seconds since the epoch by the clock of its node; None: unknown.
    rank
        Rank of the process; None if the job has only one.
    """

    type: str
    message: str
    frames: list[TracebackFrame] = field(default_factory=list)
    text: str = ""
    time: float | None = None
    rank: int | None = None
