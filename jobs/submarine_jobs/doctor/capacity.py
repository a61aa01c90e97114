"""Check whether a job of a given size could start now, and why not; nothing is submitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, warning
from submarine_jobs.options import RoleOptions, RunOptions, requested_roles, spec_from_options
from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn import ContainerRequest, Size, amounts

if TYPE_CHECKING:
    from submarine_jobs.backends import Plan

#: A role with a command needs no program in the plan.
_COMMAND = "true"


def capacity(context: DoctorContext) -> Finding:
    """Check whether a job of the requested size could start now."""
    requested = context.requested
    workers = replace(requested.role("worker") or RoleOptions("worker"), command=_COMMAND)
    others = tuple(role for role in requested.roles if role.name != "worker")
    spec = spec_from_options(
        replace(requested, name="doctor", roles=(workers, *others)), context.profile, None
    )
    plan = context.yarn.plan(spec)
    what = _("A job of {size}").format(size=_words(requested))
    if plan.errors:
        return error(_("{what} would be refused.").format(what=what), " ".join(plan.errors))
    queue = str(plan.extra.get("queue") or "default")
    reason = context.yarn.waits.would_wait(_needs(plan), queue)
    if reason:
        return warning(
            _("{what} would wait: {reason}.").format(what=what, reason=reason),
            _("`submarine doctor --gpu N --memory SIZE --queue QUEUE` asks about another one."),
        )
    return ok(_("{what} could start at once in queue {queue}.").format(what=what, queue=queue))


def _needs(plan: Plan) -> list[ContainerRequest]:
    """Return the container requests of a plan; the first includes the master."""
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


def _words(requested: RunOptions) -> str:
    count = sum(role.count for role in requested_roles(requested))
    size = Size(requested.memory or 2048, requested.vcores or 1, requested.gpus or 0)
    kinds = ("memory", "vcores", "gpus") if size.gpus else ("memory", "vcores")
    return ngettext("{count} task with {amounts}", "{count} tasks with {amounts}", count).format(
        count=count, amounts=amounts(size, kinds)
    )
