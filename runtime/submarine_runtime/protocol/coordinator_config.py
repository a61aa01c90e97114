"""``coordinator.json``: what the coordinator of a distributed job is told; no secrets in it.

What its agents are told is ``launch``; how the two talk is ``link``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol import PROTOCOL_VERSION
from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.fields import known


@dataclass
class RoleOrders:
    """One role, as the coordinator places and judges it.

    Parameters
    ----------
    service
        skein's service (``yarn``), or the directory name of its orders (``local``).
    kind
        ``tracked`` (counts for the job's end), ``untracked`` (a parameter server: never keeps a job
        alive, but its loss is a fault) or ``sidecar`` (a TensorBoard: outside the gang, never keeps
        a job alive, its loss is no fault).
    least
        ``--min-workers``: so many instances are enough to start; None: all.
    after
        Roles whose tasks must have started their programs before this role's are started.
    spread
        Ask again (bounded) for a container on a node that has no task of this role yet.
    avoid
        Host names never to be used (bounded as well).
    localizes
        What YARN brings to its containers: the archives, with their size.
    label, nodes, racks
        Where its containers may be, for the sentence on why they are not there yet.
    """

    name: str
    service: str
    instances: int = 1
    kind: str = "tracked"
    least: int | None = None
    after: list[str] = field(default_factory=list)
    memory: int = 0
    vcores: int = 1
    gpus: int = 0
    spread: bool = False
    avoid: list[str] = field(default_factory=list)
    label: str | None = None
    nodes: list[str] = field(default_factory=list)
    racks: list[str] = field(default_factory=list)
    localizes: str = ""


#: ``--restore``: the rule that chooses the restore point of a gang.
RESTORE_POLICIES = ("auto", "chief", "own", "strict")
#: ``--success``: who decides that the job has succeeded.
POLICIES = ("chief", "all", "any", "fraction")


@dataclass
class CoordinatorConfig:
    """Everything that the coordinator needs to know (``coordinator.json``).

    Parameters
    ----------
    policy
        ``chief`` (its end is the job's), ``all`` (every tracked task must succeed; the first
        failure that cannot be restarted ends the job), ``any`` (the first success ends it) or
        ``fraction`` (``allowed_failures`` of the tracked tasks, 0 to 1, may fail for good).
    max_restarts
        ``--max-restarts``: so many faults of tasks are followed by a restart, in place or of the
        gang, whatever their cause. Pre-emption and lost nodes do not count; a permanent failure (an
        ImportError) is never followed by one. None: three, and an error of the program restarts
        the gang only if it has made progress (``coordinator.faults``).
    restart_in_place
        Whether the framework lets one task be started again while the others go on.
    gang_timeout
        Seconds that the gang waits for containers before it releases those that it has; None: for
        ever.
    gang_retries
        How often it then tries again (jittered back-off) before the job fails; None: for ever.
    restore
        ``--restore``: ``auto``, ``chief``, ``own`` or ``strict``.
    restore_from, checkpoint_path, sync_interval
        As in ``launch.AgentConfig``.
    heartbeat, lost_after
        Seconds between heartbeats; seconds without one after which a task is lost.
    lost_margin
        Seconds on top before a replacement's program may start: the lost one's agent has ended its
        own by then.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface; empty for ``local``.
    lease
        Seconds that the job lives on without a sign of life of who started it; None: for ever.
    save_grace
        Seconds that the coordinator waits for the job directory's file system while that is away;
        see ``launch.AgentConfig``.
    listen_port
        0: any free one; a restarted coordinator takes its old one from the journal.
    workflow, workflow_run, workflow_node
        Where the job comes from, for its record; empty: from no workflow.
    application_attempts
        How often YARN may start the master (``max_attempts``).
    require_collective
        Fail the job if no program used the port of the rendezvous.
    """

    job_id: str
    name: str
    user: str
    backend: str
    intent: str
    created: float
    store: JobStore
    job_dir: str
    roles: list[RoleOrders] = field(default_factory=list)
    framework: str = "any"
    policy: str = "chief"
    allowed_failures: float = 0.0
    max_restarts: int | None = None
    restart_in_place: bool = False
    gang_timeout: float | None = 600.0
    gang_retries: int | None = 5
    restore: str = "auto"
    restore_from: str | None = None
    checkpoint_path: str | None = None
    sync_interval: float = 10.0
    heartbeat: float = 1.0
    lost_after: float = 25.0
    lost_margin: float = 2.0
    timeout: float | None = None
    lease: float | None = None
    kill_grace: float = 10.0
    save_grace: float = 600.0
    queue: str | None = None
    priority: int | None = None
    resourcemanagers: list[str] = field(default_factory=list)
    listen: str = "0.0.0.0"  # noqa: S104 - agents and viewers come from other hosts
    listen_port: int = 0
    application_attempts: int = 2
    links: dict[str, str] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)
    workflow: str = ""
    workflow_run: str = ""
    workflow_node: str = ""
    notes: list[str] = field(default_factory=list)
    require_collective: bool = False
    version: int = PROTOCOL_VERSION

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CoordinatorConfig:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known(cls, data)
        values["store"] = JobStore(**known(JobStore, data["store"]))
        values["roles"] = [RoleOrders(**known(RoleOrders, r)) for r in data.get("roles") or []]
        return cls(**values)
