"""Types of the JSON that the REST interface sends and receives.

``scripts/openapi.py`` writes the OpenAPI document from them, and the functions that build the JSON
are checked against them. The front end has the same types in ``labextension/src/api/types.ts``; a
test compares the names of the fields. The job record is declared in ``submarine_runtime``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

#: A record, a task or an event as ``views.record`` sends it, with the schema of the job record.
RecordJson = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/JobRecord"})
]
TaskJson = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/TaskRecord"})
]
EventJson = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Event"})
]

#: An offset in a log and the time by which all bytes before it were written.
Mark = Annotated[tuple[int, float], Meta(extra_json_schema={"example": [1200, 1795240772.1]})]
#: A label and its words.
LabelledWords = Annotated[
    tuple[str, str], Meta(extra_json_schema={"example": ["Job", "digits-20261128-7b6c"]})
]
#: The number of a log in a page, the end of its next bytes, and when they were written.
Block = Annotated[
    tuple[int, int, float], Meta(extra_json_schema={"example": [0, 5410, 1795240773.1]})
]


class JobViewJson(TypedDict):
    """A job as a card shows it; ``record.tasks`` has at most 200 of its ``task_count`` tasks.

    ``source`` is where the data comes from: the job's port, its directory, its final record or the
    backend.
    """

    record: RecordJson
    source: str
    pending: str
    advice: str
    lost_if_cancelled: str
    status: str
    log_task: str
    task_count: int
    events: list[EventJson]
    command: str
    notebook: str
    cell_id: str
    mine: bool
    has_tensorboard: bool


class JobRowJson(TypedDict):
    """A row of the list of jobs; ``gpus`` are the requested ones of all tasks."""

    job_id: str
    name: str
    state: str
    user: str
    queue: str | None
    backend: str
    created: float | None
    started: float | None
    finished: float | None
    progress: float | None
    tasks: int
    gpus: int
    detail: str
    application_id: str | None
    notebook: str
    cell_id: str
    workflow: str
    workflow_run: str
    workflow_node: str


class JobsPageJson(TypedDict):
    """A page of the list; ``problem`` is the reason if it may be outdated."""

    jobs: list[JobRowJson]
    total: int
    next: str | None
    problem: str


class TasksJson(TypedDict):
    """A page of the tasks of a job."""

    tasks: list[TaskJson]
    total: int


class EventsJson(TypedDict):
    """Events of a job in order of time; ``seq`` numbers them."""

    events: list[EventJson]


class SeriesJson(TypedDict):
    """Samples of one quantity of one task: times in seconds since the epoch, and values.

    A value that was not measured is null.
    """

    task: str
    attempt: str
    name: str
    kind: Literal["resource", "scalar"]
    unit: str
    t: list[float]
    v: list[float | None]


class MetricsJson(TypedDict):
    """Curves of a job."""

    series: list[SeriesJson]


class CellJson(TypedDict):
    """A cell of the program as it was submitted."""

    label: str
    cell_id: str | None
    file: str
    source: str


class CellsJson(TypedDict):
    """Cells of the program in order."""

    cells: list[CellJson]


class CommandJson(TypedDict):
    """The command that runs the job again."""

    command: str


class ModelVersionJson(TypedDict):
    """A saved version of a model: its size in bytes, and the digest of its files."""

    version: str
    name: str
    time: float
    size: int
    files: int
    digest: str


class ModelsJson(TypedDict):
    """Saved versions of the model, the oldest first."""

    models: list[ModelVersionJson]


class LineageJson(TypedDict):
    """Where a saved version, or without one the final model, comes from: labels and words."""

    version: str
    rows: list[LabelledWords]


class LogInfoJson(TypedDict):
    """A log and its present length in bytes."""

    task: str
    attempt: str
    stream: str
    length: int


class LogsJson(TypedDict):
    """All logs of a job."""

    logs: list[LogInfoJson]


class LogTimesJson(TypedDict):
    """Pairs of an offset and a time: all bytes before the offset were written by that time.

    ``exact`` is false where the times are those of the upload.
    """

    attempt: str
    times: list[Mark]
    exact: bool


class LogPageQueryJson(TypedDict):
    """A position in several logs, offsets by ``worker:0/e1-a1/stdout``, and the bytes to read."""

    at: dict[str, int]
    end: NotRequired[bool]
    around: NotRequired[str | None]
    backward: NotRequired[bool]
    limit: NotRequired[int]


class LogPartJson(TypedDict):
    """Bytes of one log in base64; ``at_line``: whether ``offset`` is the start of a line."""

    offset: int
    length: int
    at_line: bool
    data: str


class LogPageJson(TypedDict):
    """Bytes of several logs; ``order`` has the number of a log, the end of its bytes, a time."""

    logs: list[LogPartJson]
    order: list[Block]


class SearchHitJson(TypedDict):
    """A match, with its offset and length in bytes; ``time`` is 0 if it is not known."""

    line_offset: int
    offset: int
    length: int
    time: float
    text: str


class SearchEndJson(TypedDict):
    """The last line of a search: ``next`` is where to continue, null at the end of the log."""

    done: Literal[True]
    next: int | None
    scanned: int
    error: NotRequired[str]


class NewJobJson(TypedDict):
    """The id of a job that was submitted."""

    job_id: str


class SubmissionFormJson(TypedDict):
    """The parts of a request that submits a job.

    ``options``: a JSON object with the options of ``submarine run`` by name, with ``_`` for ``-``;
    ``bundle``: a zip of the program's files.
    """

    options: Annotated[dict[str, Any], Meta(extra_json_schema={"example": {"worker": 2}})]
    bundle: NotRequired[Annotated[str, Meta(extra_json_schema={"format": "binary"})]]


class SubmittedJson(TypedDict):
    """A submitted job; ``repeated``: by an earlier request with the same id.

    ``messages`` are warnings and notes of the checks.
    """

    job_id: str
    repeated: bool
    messages: list[str]


class EmptyJson(TypedDict):
    """An empty object."""


class QueueJson(TypedDict):
    """A queue: shares in percent; ``gpus_free`` is what a job could get there now."""

    name: str
    state: str
    capacity: float | None
    used: float | None
    gpus_total: int | None
    gpus_used: int | None
    gpus_free: int | None
    pending: int
    running: int


class NodeJson(TypedDict):
    """A node, with its memory in MiB, and the jobs or applications that hold its GPUs."""

    host: str
    state: str
    labels: list[str]
    memory_total: int
    memory_used: int
    vcores_total: int
    vcores_used: int
    gpus_total: int
    gpus_used: int
    held_by: list[str]


class GpuHolderJson(TypedDict):
    """An application that holds GPUs; ``hosts`` are those that are certain."""

    application_id: str
    job_id: str | None
    name: str
    user: str
    queue: str
    gpus: int
    hosts: list[str]
    mine: bool


class ClusterJson(TypedDict):
    """The cluster; ``problem`` is the reason if the information is incomplete."""

    backend: str
    queues: list[QueueJson]
    nodes: list[NodeJson]
    gpus_total: int
    gpus_free: int
    holders: list[GpuHolderJson]
    problem: str


class WordsJson(TypedDict):
    """Completions of the last word."""

    words: list[str]


class HealthJson(TypedDict):
    """Version of the server and of its JSON, and whether the cluster answers."""

    version: str
    api: int
    backend: str | None
    profile: str
    reachable: bool
    problem: str


class ErrorBodyJson(TypedDict):
    """An error: what is wrong, what to do, and a code for programs."""

    error: str
    fix: str
    code: str
