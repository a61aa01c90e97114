"""Roles of a distributed job: those of the spec and those that its framework adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from submarine_jobs.model.spec import JobSpec, Resources, Role
from submarine_runtime.frameworks import trait


def with_extra_roles(spec: JobSpec) -> JobSpec:
    """Return ``spec`` with the additional roles that its framework needs.

    Such a role, for example MXNet's scheduler, runs the same program without GPUs. The spec of a
    job that is not distributed is unchanged.
    """
    if not spec.distributed:
        return spec
    existing = {role.name for role in spec.roles}
    pattern = spec.worker
    size = Resources(pattern.resources.memory, 1, 0)
    extra = tuple(
        replace(
            pattern,
            name=name,
            instances=1,
            resources=size,
            kind="untracked",
            least=None,
            processes=0,
        )
        for name in trait(spec.framework, "EXTRA_ROLES")
        if name not in existing
    )
    return replace(spec, roles=spec.roles + extra) if extra else spec


def kind_of(role: Role, framework: str) -> str:
    """Return the kind of a role's tasks in a job of that framework."""
    untracked = role.kind == "tracked" and role.name in trait(framework, "UNTRACKED")
    return "untracked" if untracked else role.kind


def gang_of(spec: JobSpec) -> list[dict[str, Any]]:
    """Return name, instances and kind of each role, as ``AgentConfig`` has them."""
    return [
        {"name": role.name, "instances": role.instances, "kind": kind_of(role, spec.framework)}
        for role in spec.roles
    ]
