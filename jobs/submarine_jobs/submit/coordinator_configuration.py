"""What the coordinator of a distributed job is told, made from the spec; no secret in it.

Where the spec leaves something open, the framework's own needs decide. Addresses of the cluster
are added by the backend.
"""

from __future__ import annotations

from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.config import back_links
from submarine_jobs.model import JobSpec, Role, kind_of
from submarine_runtime.frameworks import policy_of, trait
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.record import JobRecord

#: Fields of a spec that replace the coordinator's default where they are given.
_CHOSEN = ("max_restarts", "gang_retries", "heartbeat", "lost_after")


def coordinator_orders(
    spec: JobSpec,
    directory: JobDirectory,
    record: JobRecord,
    intent: str,
    checkpoint_path: str | None = None,
    restore_from: str | None = None,
) -> CoordinatorConfig:
    """Orders for the coordinator of a distributed job.

    Parameters
    ----------
    record
        What the notebook's side knows of the job so far: id, owner, phases, what was requested.
    intent
        The submit that this coordinator works for.
    checkpoint_path, restore_from
        See ``launch.AgentConfig``.
    """
    chosen: dict[str, Any] = {
        name: getattr(spec, name) for name in _CHOSEN if getattr(spec, name) is not None
    }
    if spec.gang_timeout is not None:
        chosen["gang_timeout"] = spec.gang_timeout or None  # 0: for ever
    return CoordinatorConfig(
        job_id=record.job_id,
        name=spec.name,
        user=record.user,
        backend=record.backend,
        intent=intent,
        created=record.created or 0.0,
        store=directory.storage.job_store(directory.path),
        job_dir=directory.url,
        roles=[_role_orders(role, spec.framework) for role in spec.roles],
        framework=spec.framework,
        policy=spec.policy or policy_of(spec.framework, [role.name for role in spec.roles]),
        allowed_failures=spec.allowed_failures,
        restore=spec.restore or "auto",
        restore_from=restore_from,
        checkpoint_path=checkpoint_path,
        restart_in_place=bool(trait(spec.framework, "RESTART_IN_PLACE")),
        timeout=spec.timeout,
        lease=spec.lease,
        queue=record.queue,
        priority=spec.priority,
        links={**back_links(), **spec.quicklinks},
        phases=[vars(phase) for phase in record.phases],
        workflow=record.workflow,
        workflow_run=record.workflow_run,
        workflow_node=record.workflow_node,
        resources=record.resources,
        notes=list(record.notes),
        require_collective=spec.require_collective,
        **chosen,
    )


def _role_orders(role: Role, framework: str) -> RoleOrders:
    size = role.resources
    return RoleOrders(
        name=role.name,
        service=role.name,
        instances=role.instances,
        kind=kind_of(role, framework),
        least=role.least,
        after=list(role.after),
        memory=size.memory,
        vcores=size.vcores,
        gpus=size.gpus,
        spread=role.spread,
        avoid=list(role.avoid),
        label=role.node_label,
        nodes=list(role.nodes) if not role.relax else [],
        racks=list(role.racks) if not role.relax else [],
    )
