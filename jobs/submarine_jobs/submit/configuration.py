"""Make the configurations of agents and coordinator, and the first record, from the spec.

None of them holds a secret. Values that the spec leaves open come from the framework; the backend
adds the addresses of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Plan, Submission
from submarine_jobs.config import back_links
from submarine_jobs.inputs import NO_STORE_PATHS, StorePaths, without_user
from submarine_jobs.model import JobSpec, NamedOutput, PackedEnvironment, Sharing, resolve_roles
from submarine_jobs.storage import Storage
from submarine_jobs.text import size as size_words
from submarine_runtime.frameworks import policy_of, setting_of
from submarine_runtime.protocol import (
    APPEND_RUN,
    AgentConfig,
    CoordinatorConfig,
    JobRecord,
    JobStore,
    Phase,
    State,
    fixed_links,
)
from submarine_runtime.translation import _


def agent_config(
    spec: JobSpec,
    directory: JobDirectory,
    record: JobRecord,
    intent: str,
    python: str,
    reached: StorePaths = NO_STORE_PATHS,
) -> AgentConfig:
    """Return the configuration of the agents of the first role.

    Parameters
    ----------
    record
        The record so far: id, owner, phases, requested resources.
    intent
        Identifier of the submission.
    python
        Interpreter of roles for which the spec names none.
    reached
        Inputs and checkpoints that the agent reads from the storage.
    """
    config = AgentConfig(
        spec=spec,
        record=record,
        intent=intent,
        store=_store(directory),
        python=python,
        links={**back_links(), **spec.quicklinks},
        fetch=reached.fetch,
        sources=dict(reached.sources),
        stores=dict(reached.stores),
        publish=_targets(reached, record),
        checkpoint_path=reached.checkpoint_path,
        restore_from=reached.restore_from,
    )
    return config.of_role(spec.roles[0])


def _targets(reached: StorePaths, record: JobRecord) -> tuple[NamedOutput, ...]:
    """Return the outputs with the directories that the job creates."""
    return tuple(
        replace(one, uri=f"{one.uri}/{record.job_id}") if one.mode == APPEND_RUN else one
        for one in reached.publish
    )


def _store(directory: JobDirectory) -> JobStore:
    store = directory.storage.job_store(directory.path)
    return replace(store, shared=bool(directory.shared))


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
    input_notes: Sequence[str] = (),
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
        resources={
            "requested": _requested(spec, plan),
            **({"type": "spark"} if spec.spark is not None else {}),
        },
        notes=[
            *framework_notes(spec),
            *notes_of(spec, directory.storage),
            *input_notes,
            *_sharing_notes(spec, directory),
        ],
    )


def notes_of(spec: JobSpec, storage: Storage) -> list[str]:
    """Return notes on the paths that the program writes itself: agents have no access to them."""
    paths = {"checkpoint_path": spec.checkpoint_path, "saved_model_path": spec.saved_model_path}
    return [
        _("{uri} (--{name}) is written by the program.").format(uri=without_user(uri), name=name)
        for name, uri in paths.items()
        if uri
        and (name in spec.passed_on if name == "saved_model_path" else not storage.path_of(uri))
    ]


def framework_notes(spec: JobSpec) -> list[str]:
    """Return a note on a framework that Submarine has chosen for several processes or devices."""
    several = any(role.resources.gpus or role.processes > 1 for role in spec.roles)
    if not spec.framework_reason or not (several or spec.task_count > 1):
        return []
    return [
        _("The framework is {framework}, because {reason}.").format(
            framework=spec.framework, reason=spec.framework_reason
        )
    ]


def input_notes(reached: StorePaths) -> list[str]:
    """Return notes on the inputs whose content the submission determined."""
    notes = []
    for name, snapshot in reached.snapshots.items():
        notes.append(
            _("Input {name} is {repository} at the commit {commit} ({revision}), {size}.").format(
                name=name,
                repository=snapshot.repository.uri,
                commit=snapshot.commit,
                revision=snapshot.repository.revision,
                size=size_words(snapshot.size),
            )
        )
    for name, listing in reached.listings.items():
        if name not in reached.snapshots:
            size = sum(file.size for file in listing.files)
            notes.append(
                _("Input {name} had {count} files ({size}) at the submission.").format(
                    name=name, count=len(listing.files), size=size_words(size)
                )
            )
    return notes


def _sharing_notes(spec: JobSpec, directory: JobDirectory) -> list[str]:
    if not spec.share:
        return []
    notes = [Sharing.of(spec.share).sentence()]
    if not directory.shared:
        notes.append(_("HDFS keeps no ACLs, so other users cannot read the job directory."))
    return notes


def _requested(spec: JobSpec, plan: Plan) -> Mapping[str, Any]:
    """Return role -> resources of its tasks; ``overhead`` (MiB) is for agent and master."""
    found: dict[str, Any] = {
        role.name: {**vars(role.resources), "overhead": plan.overhead, "instances": role.instances}
        for role in spec.roles
    }
    if spec.spark is not None:
        found["executor"] = {**vars(spec.spark.resources), "instances": spec.spark.executors}
    return found


#: Fields of a spec that replace the default of the coordinator, if set.
_CHOSEN = ("gang_retries", "heartbeat", "lost_after", "restore")


def coordinator_config(
    spec: JobSpec,
    directory: JobDirectory,
    record: JobRecord,
    intent: str,
    reached: StorePaths = NO_STORE_PATHS,
) -> CoordinatorConfig:
    """Return the configuration of the coordinator of a distributed job.

    Parameters as for ``agent_config``.
    """
    chosen: dict[str, Any] = {
        name: getattr(spec, name) for name in _CHOSEN if getattr(spec, name) is not None
    }
    if spec.gang_timeout is not None:
        chosen["gang_timeout"] = spec.gang_timeout or None  # 0: no limit
    return CoordinatorConfig(
        spec=spec,
        record=record,
        intent=intent,
        store=_store(directory),
        policy=spec.policy or policy_of(spec.framework, [role.name for role in spec.roles]),
        restart_in_place=bool(setting_of(spec.framework, "RESTART_IN_PLACE")),
        restore_from=reached.restore_from,
        checkpoint_path=reached.checkpoint_path,
        publish=_targets(reached, record),
        links={**back_links(), **spec.quicklinks},
        **chosen,
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
    environments: Mapping[str, PackedEnvironment],
    hdfs_wait: float | None = None,
    port_range: str = "",
    on_step: Callable[[str], None] | None = None,
    data_zip: str | None = None,
) -> Submission:
    """Return the submission of a job whose directory is complete.

    Parameters
    ----------
    hdfs_wait
        Seconds that the job waits for the file system of its directory; None: the default.
    port_range
        ``LOW-HIGH``: the ports that the processes of the job bind; empty: any.
    on_step
        Called with each step of the backend, in words.
    data_zip
        Path of the zip of ``submarine_data``, for a program that uses it.
    """
    spec = resolve_roles(spec)
    agent = agent_config(spec, directory, record, intent, python, reached)
    coordinator = None
    if spec.distributed:
        coordinator = coordinator_config(spec, directory, record, intent, reached)
    agent.port_range = port_range
    if coordinator is not None:
        coordinator.port_range = port_range
    if hdfs_wait is not None:
        agent.save_grace = hdfs_wait
        if coordinator is not None:
            coordinator.save_grace = hdfs_wait
    return Submission(
        spec=spec,
        plan=plan,
        storage=directory.storage,
        job_dir=directory.path,
        agent=agent,
        runtime_zip=runtime_zip,
        data_zip=data_zip,
        coordinator=coordinator,
        environments=environments,
        on_step=on_step or (lambda step: None),
    )
