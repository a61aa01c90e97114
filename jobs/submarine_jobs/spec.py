"""The spec: what a user may ask for, as data; holds no secret and no code.

Does not parse options (``options``) and does not ask the cluster (``backends``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

SPEC_VERSION = 1


@dataclass(frozen=True)
class Resources:
    """Size of one task: memory in MiB (the program's own), virtual cores, GPUs."""

    memory: int = 2048
    vcores: int = 1
    gpus: int = 0


@dataclass(frozen=True)
class Role:
    """A kind of process in a job.

    ``command`` None means: run the bundle's program with the job's Python.
    """

    name: str = "worker"
    instances: int = 1
    resources: Resources = field(default_factory=Resources)
    command: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


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
    with_names, return_names
        Values sent to and brought back from the program.
    bundle_digest
        SHA-256 of the bundle, hex.
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
    version: int = SPEC_VERSION

    @property
    def worker(self) -> Role:
        """The only role of a single-task job."""
        return self.roles[0]

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
        values["roles"] = tuple(
            Role(**{**role, "resources": Resources(**role["resources"])}) for role in raw["roles"]
        )
        values["localization"] = tuple(Localization(**item) for item in raw["localization"])
        for name in ("args", "with_names", "return_names"):
            values[name] = tuple(values.get(name) or ())
        return cls(**values)
