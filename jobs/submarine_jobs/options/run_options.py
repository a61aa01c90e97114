"""What a user asked of ``run``, parsed; and back to words, so that it can be shown and repeated.

Does not decide what a job becomes (``spec_of``) and does not know where it was typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from submarine_jobs.errors import UsageError
from submarine_jobs.options.pairs import format_localization, format_pair
from submarine_jobs.options.quantities import (
    format_duration,
    format_memory,
)
from submarine_jobs.spec import Localization, Resources

_MAX_NAME = 128


@dataclass(frozen=True)
class RunOptions:
    """Options of ``run`` by their names.

    Parameters
    ----------
    name, program
        Name of the job; file to run (``train.py``, ``train.ipynb``, or a file of the cells).
    memory, vcores, gpus
        Of the one worker, MiB for memory; None: not given.
    timeout
        Seconds.
    settings
        Settings of the profile for this run (``--conf``).
    """

    name: str | None = None
    program: str | None = None
    args: tuple[str, ...] = ()
    workers: int = 1
    memory: int | None = None
    vcores: int | None = None
    gpus: int | None = None
    command: str | None = None
    queue: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    input_path: str | None = None
    checkpoint_path: str | None = None
    saved_model_path: str | None = None
    localization: tuple[Localization, ...] = ()
    quicklinks: Mapping[str, str] = field(default_factory=dict)
    framework: str = "auto"
    python_env: str | None = None
    timeout: float | None = None
    with_names: tuple[str, ...] = ()
    return_names: tuple[str, ...] = ()
    backend: str | None = None
    profile: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    wait: bool = False
    verbose: bool = False
    dry_run: bool = False
    force: bool = False
    on_interrupt: str = "detach"

    @property
    def resources(self) -> Resources:
        """Size of the worker, defaults filled in."""
        base = Resources()
        return Resources(
            memory=base.memory if self.memory is None else self.memory,
            vcores=base.vcores if self.vcores is None else self.vcores,
            gpus=base.gpus if self.gpus is None else self.gpus,
        )

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


def merge_amounts(listed: Mapping[str, int], single: Mapping[str, int | None]) -> dict[str, int]:
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


def to_argv(options: RunOptions) -> list[str]:
    """The words after ``run`` that mean ``options``, in their shortest canonical form."""
    words: list[str] = []

    def add(option: str, value: str | None) -> None:
        if value is not None:
            # One word: a value may itself start with a dash.
            words.append(f"{option}={value}")

    add("--name", options.name)
    add("--program", options.program)
    add("--worker", str(options.workers) if options.workers != 1 else None)
    add("--memory", None if options.memory is None else format_memory(options.memory))
    add("--vcores", None if options.vcores is None else str(options.vcores))
    add("--gpu", None if options.gpus is None else str(options.gpus))
    add("--worker_launch_cmd", options.command)
    for option in ("queue", "input_path", "checkpoint_path", "saved_model_path"):
        add(f"--{option}", getattr(options, option))
    for name, value in options.env.items():
        add("--env", format_pair(name, value))
    for item in options.localization:
        add("--localization", format_localization(item))
    for label, url in options.quicklinks.items():
        add("--quicklink", format_pair(label, url))
    add("--framework", options.framework if options.framework != "auto" else None)
    add("--python-env", options.python_env)
    add("--timeout", None if options.timeout is None else format_duration(options.timeout))
    add("--with", ",".join(options.with_names) or None)
    add("--return", ",".join(options.return_names) or None)
    add("--backend", options.backend)
    add("--profile", options.profile)
    for key, value in options.settings.items():
        add("--conf", format_pair(key, value))
    for flag in ("wait", "verbose", "dry_run", "force"):
        words += [f"--{flag.replace('_', '-')}"] if getattr(options, flag) else []
    add("--on-interrupt", options.on_interrupt if options.on_interrupt != "detach" else None)
    return [*words, "--", *options.args] if options.args else words


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


def unique(pairs: Sequence[tuple[str, str]], option: str) -> dict[str, str]:
    """A mapping of ``pairs``.

    Raises
    ------
    UsageError
        If a name is given twice with different values.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise UsageError(f"{option} gives {name} twice, with different values.")
    return found
