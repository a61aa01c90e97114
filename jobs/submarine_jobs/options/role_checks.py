"""Reject roles that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submarine_jobs.errors import UsageError
from submarine_jobs.model import parse_python_env
from submarine_jobs.options.role_options import RoleOptions
from submarine_jobs.options.roles import (
    AUXILIARY_ROLES,
    TENSORBOARD,
    is_only_tensorboard,
    requested_roles,
)
from submarine_jobs.options.run_options import RunOptions
from submarine_runtime.protocol import MAX_TASKS
from submarine_runtime.translation import _, ngettext

_HEARTBEAT, _LOST_AFTER = 1.0, 25.0


def check_roles(options: RunOptions) -> None:
    """Reject options that are invalid on every cluster.

    Raises
    ------
    UsageError
        If roles, their numbers or the rules for their faults contradict each other.
    """
    if is_only_tensorboard(options, program=False) and options.role("worker") is not None:
        return
    asked = requested_roles(options)
    _check_presence(options, asked)
    _check_numbers(options, asked)
    for role in asked:
        _check_one(role)
    _check_order({role.name: role.after for role in asked})
    _check_policy(options)


def _check_presence(options: RunOptions, asked: Sequence[RoleOptions]) -> None:
    named = {role.name: role for role in options.roles if role.count}
    if "worker" not in named and not any(name not in AUXILIARY_ROLES for name in named):
        for name, what in (("ps", _("no tasks to serve")), ("evaluator", _("nothing to evaluate"))):
            if name in named:
                raise UsageError(
                    _("--{name} {count} without workers has {what}.").format(
                        name=name, count=named[name].count, what=what
                    ),
                    _("Add --worker N."),
                )
    if not asked:
        raise UsageError(
            _("--worker 0 leaves nothing to run."), _("Give --worker 1, or leave it out.")
        )
    if "chief" in named and "master" in named:
        raise UsageError(
            _("A job has one chief: master is another word for it."), _("Name one of them.")
        )
    if not any(
        role.kind in (None, "tracked") and role.name not in AUXILIARY_ROLES for role in asked
    ):
        kinds = ", ".join(
            _("{role} is {kind}").format(role=role.name, kind=role.kind)
            for role in asked
            if role.kind
        )
        if not any(role.kind == "tracked" for role in asked):
            raise UsageError(
                _("Nothing would ever end this job: {kinds}.").format(kinds=kinds),
                _("Leave one role kind=tracked."),
            )


def _check_numbers(options: RunOptions, asked: Sequence[RoleOptions]) -> None:
    counts = {role.name: role.count for role in asked}
    for name in ("chief", "master"):
        if counts.get(name, 1) > 1:
            raise UsageError(
                _("--{name} {count}: a job has one chief.").format(name=name, count=counts[name]),
                _("The others are --worker N."),
            )
    if counts.get(TENSORBOARD, 1) > 1:
        raise UsageError(_("A job has one TensorBoard."), _("Write --tensorboard alone."))
    if sum(counts.values()) > MAX_TASKS:
        raise UsageError(
            _("The job asks for {number} tasks.").format(number=sum(counts.values())),
            _("The most is {max_tasks}.").format(max_tasks=MAX_TASKS),
        )
    if options.min_workers is not None:
        workers = counts.get("worker", 0)
        if options.min_workers > workers:
            raise UsageError(
                _("--min-workers {min_workers} is more than the {workers} of --worker.").format(
                    min_workers=options.min_workers, workers=workers
                ),
                (
                    _("Give 1 to {workers}.").format(workers=workers)
                    if workers
                    else _("Add --worker N.")
                ),
            )
    for role in asked:
        if role.least is not None and role.least > role.count:
            raise UsageError(
                _("--role {name}: min={least} is more than its {count} tasks.").format(
                    name=role.name, least=role.least, count=role.count
                ),
                _("Give 1 to {count}.").format(count=role.count),
            )


def _check_one(role: RoleOptions) -> None:
    if role.name == "ps" and role.gpus:
        raise UsageError(
            ngettext(
                "A parameter server has no use for {gpus} GPU.",
                "A parameter server has no use for {gpus} GPUs.",
                role.gpus,
            ).format(gpus=role.gpus),
            _("Leave gpu out of --ps_resources; workers keep theirs."),
        )
    if role.image and role.python_env and role.python_env.startswith("docker:"):
        owner = _("The role {name}").format(name=role.name)
        _check_images(role.image, role.python_env, owner)


def check_image(options: RunOptions) -> None:
    """Reject two images for the same containers."""
    if options.docker_image and options.python_env:
        _check_images(options.docker_image, options.python_env, _("The job"))


def _check_images(image: str, python_env: str, owner: str) -> None:
    parsed = parse_python_env(python_env)
    if parsed.kind == "docker" and parsed.value != image:
        raise UsageError(
            _("{owner} is given two images, {image} and {value}.").format(
                owner=owner, image=image, value=parsed.value
            ),
            _("Give one of them."),
        )


def _check_order(after: Mapping[str, Sequence[str]]) -> None:
    for name, others in after.items():
        for other in others:
            if other not in after:
                roles = ", ".join(after)
                raise UsageError(
                    _("--role {name}: after={other} names no role of this job;").format(
                        name=name, other=other
                    ),
                    _("it has {roles}.").format(roles=roles),
                )
    for name in after:
        path = _circle(name, after, (name,))
        if path:
            raise UsageError(
                _("These roles wait for each other: {path}.").format(path=_(" after ").join(path)),
                _("Take one after away."),
            )


def _circle(
    start: str, after: Mapping[str, Sequence[str]], path: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a path from ``start`` back to it; empty if there is none."""
    for other in after[path[-1]]:
        if other == start:
            return (*path, other)
        if other not in path and (found := _circle(start, after, (*path, other))):
            return found
    return ()


def _check_policy(options: RunOptions) -> None:
    if options.policy == "fraction" and options.allow_failures is None:
        raise UsageError(
            _("--policy fraction does not say which fraction may fail."),
            _("Add --allow-failures 0.2."),
        )
    if options.allow_failures is not None and options.policy not in (None, "fraction"):
        raise UsageError(
            _("--allow-failures does not go with --policy {policy}.").format(policy=options.policy),
            _("Write --policy fraction, or leave it out."),
        )
    heartbeat = options.heartbeat or _HEARTBEAT
    lost_after = options.lost_after or _LOST_AFTER
    if lost_after < 2 * heartbeat:
        raise UsageError(
            _(
                "--lost-after {lost_after:g}s would take tasks for lost that speak every "
                "{heartbeat:g}s."
            ).format(lost_after=lost_after, heartbeat=heartbeat),
            _("Give at least {heartbeat:g}s; 25 heartbeats are usual.").format(
                heartbeat=2 * heartbeat
            ),
        )
