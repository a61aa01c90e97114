"""Configurations of agents and coordinators from single values, for tests without a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from submarine_jobs.model import JobSpec, Localization, Resources, Role
from submarine_runtime.protocol import AgentConfig, CoordinatorConfig, JobRecord, JobStore, State

_RECORD = {f.name for f in fields(JobRecord)} - {"version"}
_SPEC = {f.name for f in fields(JobSpec)} - {"version", "roles", "backend", "name"}
_ROLE = {"command", "processes"}
_SIZE = {"memory", "vcores", "gpus"}


def make_role(name: str = "worker", instances: int = 1, **values: Any) -> Role:
    """A role without a limit of its memory, unless ``memory`` says one."""
    size = _take(values, _SIZE)
    return Role(name, instances, Resources(**{"memory": 0, **size}), **values)


def make_agent_config(**values: Any) -> AgentConfig:
    """The configuration of one agent; ``values`` are fields of it, the spec, the role, the record.

    ``writable`` are targets of localized files that may be changed.
    """
    name = values.setdefault("role", "worker")
    roles = values.pop("roles", ()) or [make_role(name, **_take(values, _ROLE | _SIZE))]
    files = [Localization(f"/{target}", target, "rw") for target in values.pop("writable", ())]
    values["localization"] = tuple(files)
    config: AgentConfig = _config(AgentConfig, roles, values)
    return config


def make_coordinator_config(roles: Sequence[Role], **values: Any) -> CoordinatorConfig:
    """The configuration of a coordinator; ``values`` are fields of it, the spec, the record."""
    config: CoordinatorConfig = _config(CoordinatorConfig, roles, values)
    return config


def _config(cls: type[Any], roles: Sequence[Role], values: dict[str, Any]) -> Any:
    record = {
        "job_id": "job-20261121-0a1b",
        "name": "job",
        "state": State.PENDING,
        "user": "ada",
        "backend": "local",
        "created": 0.0,
        **_take(values, _RECORD - {"links"}),
    }
    own = {"intent": "1", "store": JobStore("local", "/x")}
    own |= _take(values, {f.name for f in fields(cls)})
    spec = {"framework": "any", **_take(values, _SPEC)}
    assert not values, f"no field is named {', '.join(values)}"
    return cls(
        spec=JobSpec(record["name"], record["backend"], roles=tuple(roles), **spec),
        record=JobRecord(**record),
        **own,
    )


def _take(values: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Remove and return the values with these names."""
    return {name: values.pop(name) for name in names & set(values)}
