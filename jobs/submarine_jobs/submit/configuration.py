"""Make the configurations of agents and coordinator, and the first record, from the spec.

None of them holds a secret. Values that the spec leaves open come from the framework; the backend
adds the addresses of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Plan, Submission
from submarine_jobs.config import back_links
from submarine_jobs.inputs import NO_STORE_PATHS, StorePaths, without_user
from submarine_jobs.model import JobSpec, Role, gang_of, is_tensorboard, kind_of
from submarine_jobs.storage import Storage
from submarine_runtime.frameworks import policy_of, trait
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.quicklinks import fixed_links
from submarine_runtime.protocol.record import JobRecord, Phase
from submarine_runtime.protocol.states import State


def agent_config(
    spec: JobSpec,
    directory: JobDirectory,
    record: JobRecord,
    intent: str,
    python: str,
    role: Role | None = None,
    reached: StorePaths = NO_STORE_PATHS,
) -> AgentConfig:
    """Return the configuration of the agents of one role.

    Parameters
    ----------
    record
        The record so far: id, owner, phases, requested resources.
    intent
        Identifier of the submission.
    python
        Interpreter, unless the spec names one.
    role
        None: the only role of the job.
    reached
        Inputs that the agent reads from the storage.
    """
    role = role or spec.worker
    return AgentConfig(
        job_id=record.job_id,
        name=spec.name,
        user=record.user,
        backend=record.backend,
        intent=intent,
        created=record.created or 0.0,
        store=directory.storage.job_store(directory.path),
        job_dir=directory.url,
        role=role.name,
        program=spec.program or "main.py",
        args=list(spec.args),
        command=role.command,
        python=role.python or spec.python or python,
        env={**spec.env, **role.env},
        inputs={"PATH": spec.input_path} if spec.input_path else {},
        framework=spec.framework,
        memory=role.resources.memory,
        vcores=role.resources.vcores,
        gpus=role.resources.gpus,
        timeout=spec.timeout,
        lease=spec.lease,
        return_names=list(spec.return_names),
        queue=record.queue,
        links={**back_links(), **spec.quicklinks},
        phases=[vars(phase) for phase in record.phases],
        workflow=record.workflow,
        workflow_run=record.workflow_run,
        workflow_node=record.workflow_node,
        resources=record.resources,
        notes=list(record.notes),
        # TensorBoard reads no input.
        fetch=[] if is_tensorboard(role) else list(reached.fetch),
        checkpoint_path=reached.checkpoint_path,
        restore_from=reached.restore_from,
        params=dict(spec.params),
        processes=role.processes,
        roles=gang_of(spec) if spec.distributed else [],
        network_interface=spec.network_interface,
        own_launcher=spec.own_launcher,
        require_collective=spec.require_collective,
        return_all_ranks=spec.return_all_ranks,
        keep=list(spec.keep),
        writable=[
            item.target for item in (*spec.localization, *spec.archives) if item.mode == "rw"
        ],
    )


def first_record(
    spec: JobSpec,
    plan: Plan,
    directory: JobDirectory,
    *,
    job_id: str,
    user: str,
    state: State,
    created: float,
    phases: Sequence[Phase],
) -> JobRecord:
    """Return the record of a job before its agent has reported."""
    return JobRecord(
        job_id,
        spec.name,
        state,
        user=user,
        backend=spec.backend,
        job_dir=directory.url,
        queue=spec.queue or plan.extra.get("queue"),
        created=created,
        workflow=spec.workflow or "",
        workflow_run=spec.workflow_run or "",
        workflow_node=spec.workflow_node or "",
        phases=list(phases),
        links=fixed_links(spec.quicklinks, [role.name for role in spec.roles]),
        resources={"requested": _requested(spec, plan)},
        notes=notes_of(spec, directory.storage),
    )


def notes_of(spec: JobSpec, storage: Storage) -> list[str]:
    """Return notes on the paths that the program writes itself: agents have no access to them."""
    paths = {"checkpoint_path": spec.checkpoint_path, "saved_model_path": spec.saved_model_path}
    return [
        f"{without_user(uri)} (--{name}) is written by the program."
        for name, uri in paths.items()
        if uri and (name == "saved_model_path" or storage.path_of(uri) is None)
    ]


def _requested(spec: JobSpec, plan: Plan) -> Mapping[str, Any]:
    """Return role -> resources of its tasks; ``overhead`` (MiB) is for agent and master."""
    return {
        role.name: {**vars(role.resources), "overhead": plan.overhead, "instances": role.instances}
        for role in spec.roles
    }


#: Fields of a spec that replace the default of the coordinator, if set.
_CHOSEN = ("max_restarts", "gang_retries", "heartbeat", "lost_after")


def coordinator_config(
    spec: JobSpec,
    directory: JobDirectory,
    record: JobRecord,
    intent: str,
    checkpoint_path: str | None = None,
    restore_from: str | None = None,
) -> CoordinatorConfig:
    """Return the configuration of the coordinator of a distributed job.

    Parameters
    ----------
    record
        The record so far: id, owner, phases, requested resources.
    intent
        Identifier of the submission.
    checkpoint_path, restore_from
        See ``AgentConfig``.
    """
    chosen: dict[str, Any] = {
        name: getattr(spec, name) for name in _CHOSEN if getattr(spec, name) is not None
    }
    if spec.gang_timeout is not None:
        chosen["gang_timeout"] = spec.gang_timeout or None  # 0: no limit
    return CoordinatorConfig(
        job_id=record.job_id,
        name=spec.name,
        user=record.user,
        backend=record.backend,
        intent=intent,
        created=record.created or 0.0,
        store=directory.storage.job_store(directory.path),
        job_dir=directory.url,
        roles=[_role_config(role, spec.framework) for role in spec.roles],
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


def _role_config(role: Role, framework: str) -> RoleOrders:
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


def make_submission(
    spec: JobSpec,
    plan: Plan,
    directory: JobDirectory,
    record: JobRecord,
    *,
    intent: str,
    python: str,
    runtime_zip: str,
    reached: StorePaths,
    environments: dict[str, str],
    hdfs_wait: float | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Submission:
    """Return the submission of a job whose directory is complete.

    Parameters
    ----------
    hdfs_wait
        Seconds that the job waits for the file system of its directory; None: the default.
    on_step
        Called with each step of the backend, in words.
    """
    agents = {
        role.name: agent_config(spec, directory, record, intent, python, role, reached)
        for role in spec.roles
    }
    coordinator = None
    if spec.distributed:
        path, job = reached.checkpoint_path, reached.restore_from
        coordinator = coordinator_config(spec, directory, record, intent, path, job)
    if hdfs_wait is not None:
        for agent in agents.values():
            agent.save_grace = hdfs_wait
        if coordinator is not None:
            coordinator.save_grace = hdfs_wait
    return Submission(
        spec=spec,
        plan=plan,
        storage=directory.storage,
        job_dir=directory.path,
        agent=agents[spec.roles[0].name],
        runtime_zip=runtime_zip,
        coordinator=coordinator,
        agents=agents if spec.distributed else {},
        environments=environments,
        on_step=on_step or (lambda step: None),
    )
