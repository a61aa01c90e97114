"""From options and a profile to the spec of a job: pure, no cluster, no file.

The last place where a request can be refused before anything is checked against the cluster.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Protocol

from submarine_jobs.config_values import python_of
from submarine_jobs.errors import NoClusterError, UsageError
from submarine_jobs.options.run_options import RunOptions, check_name
from submarine_jobs.placeholders import fill_spec
from submarine_jobs.profile import Profile
from submarine_jobs.spec import JobSpec, Role


class Program(Protocol):
    """What a spec needs to know of a bundle; ``bundle.Bundle`` has it."""

    @property
    def program(self) -> str:
        """The file that is run."""

    @property
    def files(self) -> Mapping[str, bytes]:
        """Name below the working directory -> content."""

    @property
    def digest(self) -> str:
        """SHA-256 of the program, hex."""


def no_cluster() -> NoClusterError:
    """The refusal of a ``run`` for which no cluster is configured; names the two ways on."""
    return NoClusterError(
        "No cluster is configured: HADOOP_CONF_DIR is not set and no submarine.toml names one.",
        "Start one on this machine with `submarine minicluster start` and add "
        "`--profile minicluster`, or run without a cluster: `--backend local`.",
    )


def check_options(options: RunOptions) -> None:
    """Refuse what no cluster and no program could make right.

    Raises
    ------
    UsageError
        If options contradict each other or ask for more than one worker.
    """
    if options.name is not None:
        check_name(options.name)
    if options.workers != 1:
        raise UsageError(
            f"--worker {options.workers}: distributed jobs are not in this release.",
            "Leave it out, or write --worker 1.",
        )
    if options.command is not None and options.args:
        raise UsageError(
            "Arguments after -- belong to a program, and --worker_launch_cmd replaces it.",
            "Write them in the command.",
        )
    _check_targets(options)


def spec_from_options(
    options: RunOptions,
    profile: Profile,
    bundle: Program | None,
    *,
    notebook: str | None = None,
) -> JobSpec:
    """The spec that ``options`` ask for, with placeholders filled in.

    Parameters
    ----------
    bundle
        None: the worker's command needs no program.
    notebook
        Name of the notebook that the program comes from, for the record.

    Raises
    ------
    UsageError
        If options contradict each other.
    NoClusterError
        If neither options nor configuration name a backend.
    """
    check_options(options)
    if profile.backend is None:
        raise no_cluster()
    if options.command is None and bundle is None:
        raise UsageError("There is no program to run.", "Name one: submarine run train.py.")
    if bundle is not None:
        _check_overlap(options, bundle)
    role = Role(instances=1, resources=options.resources, command=options.command)
    spec = JobSpec(
        name=check_name(options.name or ""),
        backend=profile.backend,
        queue=profile.queue,
        roles=(role,),
        program=bundle.program if bundle is not None and options.command is None else None,
        args=options.args,
        env=dict(options.env),
        framework=options.framework,
        python_env=profile.python_env,
        python=python_of(profile.python_env, profile.python),
        input_path=options.input_path,
        checkpoint_path=options.checkpoint_path,
        saved_model_path=options.saved_model_path,
        localization=options.localization,
        quicklinks=dict(options.quicklinks),
        timeout=options.timeout,
        with_names=options.with_names,
        return_names=options.return_names,
        bundle_digest=bundle.digest if bundle is not None else "",
        notebook=notebook,
    )
    return fill_spec(spec)


def _check_targets(options: RunOptions) -> None:
    """Two localised files cannot have one name; neither may one lie in the other."""
    taken: list[str] = []
    for item in options.localization:
        target = posixpath.normpath(item.target)
        for other in taken:
            if target == other or (target + "/").startswith(other + "/"):
                raise UsageError(f"--localization puts two things at {target[:80]}.")
            if (other + "/").startswith(target + "/"):
                raise UsageError(f"--localization puts {other[:80]} into {target[:80]}.")
        taken.append(target)


def _check_overlap(options: RunOptions, bundle: Program) -> None:
    """A localised file cannot take the place of one of the program's own."""
    for item in options.localization:
        for name in bundle.files:
            if name == item.target or name.startswith(item.target + "/"):
                raise UsageError(
                    f"--localization {item.source}: {name} is a file of the program itself.",
                    "Choose another TARGET.",
                )
