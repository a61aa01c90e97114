"""Roles of a distributed job as its framework needs them."""

from __future__ import annotations

from dataclasses import replace

from submarine_runtime.frameworks import setting_of
from submarine_runtime.protocol import JobSpec, Resources, Role


def resolve_roles(spec: JobSpec) -> JobSpec:
    """Return ``spec`` with the kinds and the additional roles that its framework needs.

    An additional role, for example MXNet's scheduler, runs the same program without GPUs. The spec
    of a job that is not distributed is unchanged.
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
        for name in setting_of(spec.framework, "EXTRA_ROLES")
        if name not in existing
    )
    untracked = setting_of(spec.framework, "UNTRACKED")
    roles = tuple(_with_kind(role, untracked) for role in spec.roles)
    return replace(spec, roles=roles + extra)


def _with_kind(role: Role, untracked: tuple[str, ...]) -> Role:
    serves = role.kind == "tracked" and role.name in untracked
    return replace(role, kind="untracked") if serves else role
