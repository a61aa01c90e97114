"""Parsed options of ``run``. ``spec`` builds a spec from them, ``command_line`` formats them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Localization, NamedInput
from submarine_jobs.options.role_options import RoleOptions

_MAX_NAME = 128


@dataclass(frozen=True)
class RunOptions:
    """Options of ``run`` by their names; None or empty: not given.

    Parameters
    ----------
    name, program
        Name of the job; file to run (``train.py``, ``train.ipynb``, or a file of the cells).
    roles
        What was said of single roles, the usual ones first.
    memory, vcores, gpus
        Of the workers and of every role that has no size of its own; MiB for memory.
    min_workers, processes, node_label, nodes, racks, spread, avoid_nodes
        For the roles that do not say otherwise; see ``spec.Role``.
    timeout, gang_timeout, heartbeat, lost_after
        Seconds; a ``gang_timeout`` of 0 means for ever.
    allow_failures
        0 to 1.
    settings
        Settings of the profile for this run (``--conf``).
    """

    name: str | None = None
    program: str | None = None
    args: tuple[str, ...] = ()
    framework: str = "auto"
    roles: tuple[RoleOptions, ...] = ()
    memory: int | None = None
    vcores: int | None = None
    gpus: int | None = None
    processes: int | None = None
    min_workers: int | None = None
    gang_timeout: float | None = None
    gang_retries: int | None = None
    max_restarts: int | None = None
    policy: str | None = None
    allow_failures: float | None = None
    heartbeat: float | None = None
    lost_after: float | None = None
    require_collective: bool = False
    timeout: float | None = None
    input_path: str | None = None
    checkpoint_path: str | None = None
    saved_model_path: str | None = None
    inputs: tuple[NamedInput, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    localization: tuple[Localization, ...] = ()
    files: tuple[Localization, ...] = ()
    archives: tuple[Localization, ...] = ()
    resume: str | None = None
    restore: str | None = None
    with_names: tuple[str, ...] = ()
    return_names: tuple[str, ...] = ()
    return_all_ranks: bool = False
    keep: tuple[str, ...] = ()
    python_env: str | None = None
    docker_image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    node_label: str | None = None
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    spread: bool = False
    avoid_nodes: tuple[str, ...] = ()
    network_interface: str | None = None
    profile: str | None = None
    backend: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quicklinks: Mapping[str, str] = field(default_factory=dict)
    wait: bool = False
    verbose: bool = False
    dry_run: bool = False
    force: bool = False
    on_interrupt: str = "detach"

    def role(self, name: str) -> RoleOptions | None:
        """What was said of one role."""
        return next((role for role in self.roles if role.name == name), None)

    @property
    def command(self) -> str | None:
        """The workers' command (``--worker_launch_cmd``)."""
        worker = self.role("worker")
        return worker.command if worker is not None else None

    @property
    def config_options(self) -> dict[str, str | None]:
        """The part that configuration understands, for ``config.load_config``."""
        named = {
            "profile": self.profile,
            "backend": self.backend,
            "queue": self.queue,
            "python_env": self.python_env,
        }
        return {**named, **{f"settings.{key}": value for key, value in self.settings.items()}}


def check_name(name: str) -> str:
    """A job's name as it stands.

    Raises
    ------
    UsageError
        If it is empty, longer than 128 characters, or holds control characters.
    """
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise UsageError(
            f"{name[:40]!r} cannot be a job's name.",
            "Use 1 to 128 printable characters, for example digits.",
        )
    return name


def merge_resources(listed: Mapping[str, int], single: Mapping[str, int | None]) -> dict[str, int]:
    """One amount a resource from ``--worker_resources`` and ``--memory --vcores --gpu``.

    Raises
    ------
    UsageError
        If both give different amounts of the same resource.
    """
    merged = dict(listed)
    for key, amount in single.items():
        if amount is None:
            continue
        if merged.setdefault(key, amount) != amount:
            shown = {"memory": "--memory", "vcores": "--vcores", "gpus": "--gpu"}[key]
            raise UsageError(
                f"{shown} and --worker_resources give different amounts of the same resource "
                f"({amount} and {merged[key]}).",
                "Give one of them.",
            )
    return merged


def split_args(text: str) -> tuple[str, ...]:
    """The words of ``--args "--epochs 3"``.

    Raises
    ------
    UsageError
        If a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise UsageError(f"--args {text[:60]!r} cannot be split into words: {exc}.") from exc


def unique_pairs(pairs: Sequence[tuple[str, Any]], option: str) -> dict[str, Any]:
    """A mapping of ``pairs``.

    Raises
    ------
    UsageError
        If a name is given twice with different values.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise UsageError(f"{option} gives {name} twice, with different values.")
    return found
