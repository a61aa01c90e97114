"""The check that asks what a job of some size would wait for at this moment; submits nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, warning
from submarine_jobs.options import RoleOptions, RunOptions, requested_roles, spec_from_options
from submarine_runtime.yarn import ContainerRequest, Size, amounts

if TYPE_CHECKING:
    from submarine_jobs.backends import Plan

#: Nothing is run: a command spares the plan a program.
_NOTHING = "true"


def capacity(context: DoctorContext) -> Finding:
    """Whether a job of the size that was asked about could start now, and why not."""
    wish = context.wish
    workers = replace(wish.role("worker") or RoleOptions("worker"), command=_NOTHING)
    others = tuple(role for role in wish.roles if role.name != "worker")
    spec = spec_from_options(
        replace(wish, name="doctor", roles=(workers, *others)), context.profile, None
    )
    plan = context.yarn.plan(spec)
    what = f"A job of {_words(wish)}"
    if plan.errors:
        return error(f"{what} would be refused.", " ".join(plan.errors))
    queue = str(plan.extra.get("queue") or "default")
    why = context.yarn.waits.would_wait(_needs(plan), queue)
    if why:
        return warning(
            f"{what} would wait: {why}.",
            "`submarine doctor --gpu N --memory SIZE --queue QUEUE` asks about another one.",
        )
    return ok(f"{what} could start at once in queue {queue}.")


def _needs(plan: Plan) -> list[ContainerRequest]:
    """The containers of a plan; the first is, or holds, the master."""
    return [
        ContainerRequest(
            int(entry.get("count", 1)),
            int(entry["memory"]),
            int(entry["vcores"]),
            int(entry["gpus"]),
            master=number == 0,
        )
        for number, entry in enumerate(plan.containers)
    ]


def _words(wish: RunOptions) -> str:
    count = sum(role.count for role in requested_roles(wish))
    size = Size(wish.memory or 2048, wish.vcores or 1, wish.gpus or 0)
    kinds = ("memory", "vcores", "gpus") if size.gpus else ("memory", "vcores")
    return f"{count} task{'' if count == 1 else 's'} with {amounts(size, kinds)}"
