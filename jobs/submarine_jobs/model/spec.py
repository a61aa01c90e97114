"""The spec: what a user may ask for, as data; holds no secret and no code.

Does not parse options (``options``) and does not ask the cluster (``backends``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

# What a role is belongs to the spec, and is asked for here.
from submarine_jobs.model.roles import (
    KINDS,
    SIDECAR_ROLES,
    UNTRACKED_ROLES,
    Resources,
    Role,
    usual_kind,
)

SPEC_VERSION = 1
__all__ = [
    "KINDS",
    "SIDECAR_ROLES",
    "SPEC_VERSION",
    "UNTRACKED_ROLES",
    "JobSpec",
    "Localization",
    "NamedInput",
    "Resources",
    "Role",
    "usual_kind",
]


@dataclass(frozen=True)
class NamedInput:
    """``--input NAME=URI[:shard]``: fetched before start, found at ``SUBMARINE_INPUT_<NAME>``.

    ``shard_roles`` are the roles of ``:shard=ROLE,...``; empty: the tasks that train share it.
    """

    name: str
    uri: str
    shard: bool = False
    shard_roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Localization:
    """A file or directory brought to the container: source URI, name there, ``rw`` or ``ro``."""

    source: str
    target: str
    mode: str = "ro"


@dataclass(frozen=True)
class JobSpec:
    """Everything that decides what a job is; written to ``spec.json``.

    Parameters
    ----------
    name
        Name given by the user; the job id starts with a slug of it.
    program, args
        Entry file within the bundle and its arguments (None: roles carry a command).
    python_env
        ``host`` (``python`` is the kernel's own interpreter) or ``path:/opt/env``.
    python
        Absolute path of the interpreter in the container, resolved from ``python_env``.
    input_path, checkpoint_path, saved_model_path
        URIs, as in Apache Submarine; replace ``%input_path%`` and the like in commands.
    timeout
        Seconds that the program may run; None: no limit.
    archives
        Archives (URI or path) unpacked beside the program, as ``Localization`` with mode ``ro``.
    inputs
        What is fetched before the program starts.
    params
        ``--param``: NAME -> JSON value.
    policy, allowed_failures, max_restarts, gang_timeout, gang_retries, heartbeat, lost_after
        See ``launch.CoordinatorConfig``; None: its default, or what the framework needs.
    priority
        YARN's priority within the queue, 0 and up; None: the queue's default.
    network_interface
        What gloo and NCCL are told to use; None: found out on each node.
    docker_image
        Image of all containers but the master's; None: no Docker.
    restore
        ``--restore``: ``auto``, ``chief``, ``own`` or ``strict``; None: ``auto``.
    resume_from
        Job id whose newest checkpoint is put back before the first start.
    with_names, return_names
        Values sent to and brought back from the program.
    bundle_digest
        SHA-256 of the bundle, hex.
    notebook, cell_id
        Path of the document that the program comes from and the cell that was run to submit it, as
        the kernel knows them; None: none.
    workflow, workflow_run, workflow_node
        Where it comes from when a workflow started it; see ``origin``. None: none.
    yarn_tags
        Further tags of its YARN application.
    lease
        Seconds that it lives on without a sign of life of who started it; None: for ever.
    passed_on
        Names of the paths whose placeholder the command, arguments or environment used.
    own_launcher
        The program's library starts the processes of a single task; see ``launch.AgentConfig``.
    return_all_ranks
        Values of every rank are returned, not only those of rank 0.
    keep
        Patterns of files in the working directory that are saved as outputs.
    require_collective
        The job fails if its tasks never opened the port of their rendezvous.
    run_id
        The headless run that it belongs to, where a second attempt may attach to it.
    """

    name: str
    backend: str
    queue: str | None = None
    roles: tuple[Role, ...] = (Role(),)
    program: str | None = "main.py"
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    framework: str = "auto"
    python_env: str = "host"
    python: str = ""
    input_path: str | None = None
    checkpoint_path: str | None = None
    saved_model_path: str | None = None
    localization: tuple[Localization, ...] = ()
    quicklinks: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    with_names: tuple[str, ...] = ()
    return_names: tuple[str, ...] = ()
    bundle_digest: str = ""
    notebook: str | None = None
    rerun_of: str | None = None
    archives: tuple[Localization, ...] = ()
    inputs: tuple[NamedInput, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    allowed_failures: float = 0.0
    max_restarts: int | None = None
    gang_timeout: float | None = None
    gang_retries: int | None = None
    heartbeat: float | None = None
    lost_after: float | None = None
    priority: int | None = None
    network_interface: str | None = None
    docker_image: str | None = None
    resume_from: str | None = None
    restore: str | None = None
    cell_id: str | None = None
    workflow: str | None = None
    workflow_run: str | None = None
    workflow_node: str | None = None
    yarn_tags: tuple[str, ...] = ()
    lease: float | None = None
    run_id: str | None = None
    passed_on: tuple[str, ...] = ()
    own_launcher: bool = False
    require_collective: bool = False
    return_all_ranks: bool = False
    keep: tuple[str, ...] = ()
    version: int = SPEC_VERSION

    @property
    def worker(self) -> Role:
        """The only role of a single-task job; the chief's role of any other."""
        by_name = {role.name: role for role in self.roles}
        for name in ("chief", "master", "worker"):
            if name in by_name:
                return by_name[name]
        return self.roles[0]

    @property
    def task_count(self) -> int:
        """Tasks of all roles together."""
        return sum(role.instances for role in self.roles)

    @property
    def distributed(self) -> bool:
        """Whether the job needs a coordinator: more than one task, or what only that can do."""
        role = self.roles[0]
        placed = role.node_label or role.nodes or role.racks or role.avoid or role.docker_image
        docker = self.docker_image or any(
            env and env.startswith("docker:") for env in (self.python_env, role.python_env)
        )
        wants = self.max_restarts or role.kind != "tracked" or role.after
        return self.task_count > 1 or bool(placed or docker or wants)

    def to_bytes(self) -> bytes:
        """Canonical JSON: the same spec gives the same bytes."""
        return json.dumps(asdict(self), sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> JobSpec:
        """Read what ``to_bytes`` wrote; unknown fields of newer writers are ignored.

        Raises
        ------
        ValueError
            If it is no spec, or of a version that this release cannot read.
        """
        raw = json.loads(data)
        if not isinstance(raw, dict) or int(raw.get("version", 0)) > SPEC_VERSION:
            raise ValueError("spec.json is not a spec that this version of Submarine can read")
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {key: value for key, value in raw.items() if key in known}
        values["roles"] = tuple(_role(role) for role in raw["roles"])
        for name in ("localization", "archives"):
            values[name] = tuple(Localization(**item) for item in raw.get(name) or ())
        values["inputs"] = tuple(_input(item) for item in raw.get("inputs") or ())
        for name in ("args", "with_names", "return_names", "yarn_tags", "passed_on", "keep"):
            values[name] = tuple(values.get(name) or ())
        return cls(**values)


def _input(raw: Mapping[str, Any]) -> NamedInput:
    return NamedInput(**{**raw, "shard_roles": tuple(raw.get("shard_roles") or ())})


def _role(raw: Mapping[str, Any]) -> Role:
    known = {f.name for f in fields(Role)}
    values = {key: value for key, value in raw.items() if key in known}
    values["resources"] = Resources(**raw["resources"])
    for name in ("after", "nodes", "racks", "avoid"):
        values[name] = tuple(values.get(name) or ())
    return Role(**values)
