"""Configuration of the coordinator of a distributed job (``coordinator.json``); holds no secrets.

The configuration of its agents is ``agent_config``; the messages between them are ``link``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from submarine_runtime.protocol.agent_config import JobStore, LogServer
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.serialization import PROTOCOL_VERSION
from submarine_runtime.protocol.spec import JobSpec, NamedOutput

#: ``--restore``: the rule that chooses the restore point of a gang.
RESTORE_POLICIES = ("auto", "chief", "union", "own", "strict")
#: ``--success``: the policy that decides whether the job has succeeded.
SUCCESS_POLICIES = ("chief", "all", "any", "fraction")


@dataclass
class CoordinatorConfig:
    """The spec of the job with its defaults resolved, and what else the coordinator needs.

    Parameters
    ----------
    record, intent, links, restore_from, checkpoint_path, publish, sync_interval, kill_grace,
    save_grace, port_range
        As in ``AgentConfig``.
    policy
        ``chief`` (its end is the end of the job), ``all`` (every tracked task must succeed; the
        first failure that cannot be restarted ends the job), ``any`` (the first success ends it) or
        ``fraction`` (``allowed_failures`` of the tracked tasks may fail finally).
    restart_in_place
        Whether the framework supports the restart of one task while the others continue.
    gang_timeout
        Seconds that the gang waits for containers before it releases those that it has; None: no
        limit.
    gang_retries
        Number of further attempts (with jittered back-off) before the job fails; None: no limit.
    restore
        ``--restore``: ``auto``, ``chief``, ``own`` or ``strict``.
    heartbeat, lost_after
        Seconds between heartbeats; seconds without one after which a task is lost.
    lost_margin
        Additional seconds before a replacement's program may start: the lost task's agent has ended
        its own program by then.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface; empty for ``local``.
    localizes
        Role -> description of the archives that YARN localizes for its containers, with their size.
    listen_port
        0: any free one; a restarted coordinator takes its old one from the journal.
    application_attempts
        Maximum number of attempts of the application (``max_attempts``).
    log_server
        Where YARN shows the text of the job after its end.
    """

    spec: JobSpec
    record: JobRecord
    intent: str
    store: JobStore
    policy: str = "chief"
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
    kill_grace: float = 10.0
    save_grace: float = 600.0
    resourcemanagers: list[str] = field(default_factory=list)
    localizes: dict[str, str] = field(default_factory=dict)
    listen: str = "0.0.0.0"  # noqa: S104 - agents and viewers come from other hosts
    listen_port: int = 0
    port_range: str = ""
    application_attempts: int = 2
    links: dict[str, str] = field(default_factory=dict)
    log_server: LogServer = field(default_factory=LogServer)
    publish: tuple[NamedOutput, ...] = ()
    version: int = PROTOCOL_VERSION
