"""Configuration of the coordinator of a distributed job (``coordinator.json``); holds no secrets.

The configuration of its agents is ``launch``; the messages between them are ``link``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol import PROTOCOL_VERSION
from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.fields import known_fields


@dataclass
class RoleOrders:
    """One role, for placement and for the success policy.

    Parameters
    ----------
    service
        skein's service (``yarn``), or the name of the configuration directory (``local``).
    kind
        ``tracked`` (counts for the job's end), ``untracked`` (a parameter server: does not keep a
        job alive, but its loss is a fault) or ``sidecar`` (a TensorBoard: outside the gang, does
        not keep a job alive, its loss is not a fault).
    least
        ``--min-workers``: the number of instances that suffices for a start; None: all.
    after
        Roles whose tasks must have started their programs before this role's are started.
    spread
        Request another container (bounded) until the node has no other task of this role.
    avoid
        Host names that are not used (bounded as well).
    localizes
        The archives that YARN localizes for its containers, with their size.
    label, nodes, racks
        Placement constraints, for the sentence on why its containers are not allocated yet.
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
#: ``--success``: the policy that decides whether the job has succeeded.
POLICIES = ("chief", "all", "any", "fraction")


@dataclass
class CoordinatorConfig:
    """Everything that the coordinator needs (``coordinator.json``).

    Parameters
    ----------
    policy
        ``chief`` (its end is the end of the job), ``all`` (every tracked task must succeed; the
        first failure that cannot be restarted ends the job), ``any`` (the first success ends it) or
        ``fraction`` (``allowed_failures`` of the tracked tasks, 0 to 1, may fail finally).
    max_restarts
        ``--max-restarts``: the number of faults of tasks that are followed by a restart, in place
        or of the gang, whatever their cause. Pre-emption and lost nodes do not count. A permanent
        failure (an ImportError) is never followed by a restart. None: three, and an error of the
        program restarts the gang only if it has made progress (``coordinator.faults``).
    restart_in_place
        Whether the framework supports the restart of one task while the others continue.
    gang_timeout
        Seconds that the gang waits for containers before it releases those that it has; None: no
        limit.
    gang_retries
        Number of further attempts (with jittered back-off) before the job fails; None: no limit.
    restore
        ``--restore``: ``auto``, ``chief``, ``own`` or ``strict``.
    restore_from, checkpoint_path, sync_interval
        As in ``launch.AgentConfig``.
    heartbeat, lost_after
        Seconds between heartbeats; seconds without one after which a task is lost.
    lost_margin
        Additional seconds before a replacement's program may start: the lost task's agent has ended
        its own program by then.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface; empty for ``local``.
    lease
        Seconds that the job continues without a renewal by the client that started it; None: no
        limit.
    save_grace
        Seconds that the coordinator waits while the job directory's file system is not available;
        see ``launch.AgentConfig``.
    listen_port
        0: any free one; a restarted coordinator takes its old one from the journal.
    workflow, workflow_run, workflow_node
        Origin of the job, for its record; empty: no workflow.
    application_attempts
        Maximum number of attempts of the application (``max_attempts``).
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
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CoordinatorConfig:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known_fields(cls, data)
        values["store"] = JobStore(**known_fields(JobStore, data["store"]))
        values["roles"] = [
            RoleOrders(**known_fields(RoleOrders, r)) for r in data.get("roles") or []
        ]
        return cls(**values)
