"""The report of ``run --dry-run``: findings, request and bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from submarine_jobs.checks import expected_rule, uses_data
from submarine_jobs.commands.run.program import Program
from submarine_jobs.display import columns
from submarine_jobs.frontends import SUCCESS, USAGE, Outcome
from submarine_jobs.model import TENSORBOARD_COMMAND, Sharing, format_duration, format_memory
from submarine_jobs.options import TENSORBOARD_HISTORY
from submarine_jobs.submit import secret_sources
from submarine_jobs.text import one_line, size as size_words
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.backends import Plan
    from submarine_jobs.checks import Finding
    from submarine_jobs.errors import SubmarineError
    from submarine_jobs.inputs import TaskInput
    from submarine_jobs.model import JobSpec, Role

_MAX_FILES = 50
_MAX_INPUTS = 50


def dry_run_outcome(
    spec: JobSpec,
    plan: Plan,
    program: Program,
    findings: Sequence[Finding],
    refusals: Sequence[SubmarineError] = (),
    inputs: Sequence[TaskInput] = (),
    advice: Sequence[str] = (),
    *,
    force: bool = False,
) -> Outcome:
    """Return the report; the exit code is that of a submission, 0 if it would be accepted.

    Parameters
    ----------
    refusals
        See ``validation.Validated``; those of the plan come first.
    advice
        One sentence on the mode of an input each.
    """
    errors = [] if force else [item for item in findings if str(item.level) == "error"]
    codes = [error.exit_code for error in refusals]
    codes[len(plan.errors[:1]) : 0] = [USAGE] * len(errors)
    refused = bool(codes)
    others = refusals[len(plan.errors[:1]) :]
    sentences = [*plan.errors, *(str(error) for error in others)]
    lines = [_("Dry run: nothing was submitted."), ""]
    lines += _request(spec, plan, program)
    lines += input_lines(inputs, advice)
    lines += _bundle(spec, program)
    lines += _finding_lines(sentences, plan, findings)
    lines += ["", _("A submit would be refused.") if refused else _("It can be submitted.")]
    return Outcome(
        text="\n".join(lines),
        value={
            **_value(spec, plan, program, findings, sentences, inputs, refused=refused),
            "advice": list(advice),
        },
        exit_code=codes[0] if refused else SUCCESS,
    )


def finding_line(item: Finding) -> str:
    """Return a finding as one line, sanitized, because it may quote the program."""
    return one_line(f"{item.message} {item.fix}".strip())


def _request(spec: JobSpec, plan: Plan, program: Program) -> list[str]:
    lines = [
        _("Job         {name} on {backend}").format(name=one_line(spec.name), backend=spec.backend)
    ]
    if spec.queue:
        lines.append(_("Queue       {queue}").format(queue=one_line(spec.queue)))
    if spec.framework != "any" or spec.framework_reason:
        why = f" ({spec.framework_reason})" if spec.framework_reason else ""
        framework = one_line(spec.framework + why)
        lines.append(_("Framework   {framework}").format(framework=framework))
    lines.append(_("Placement   {placement}").format(placement=one_line(plan.placement)))
    lines += [
        _("Container   {container}").format(container=_container(container))
        for container in plan.containers
    ]
    if plan.overhead:
        what = _("the program") if spec.task_count == 1 else _("each program of its size")
        lines.append(
            _(
                "Overhead    {overhead} MiB of it for master and agent, {memory} MiB for {program}"
            ).format(overhead=plan.overhead, memory=spec.worker.resources.memory, program=what)
        )
    if spec.task_count > 1:
        lines += ["", *role_lines(spec), ""]
    else:
        lines.append(_("Command     {command}").format(command=_command(spec, spec.worker)))
    lines += [
        _("Secret      {source}").format(source=one_line(text))
        for text in secret_sources(spec.secrets)
    ]
    lines += _checkpoint_lines(spec, program)
    if spec.share:
        lines.append(_("Share       {names}").format(names=Sharing.of(spec.share).sentence()))
    if spec.timeout is not None:
        lines.append(_("Timeout     {time}").format(time=format_duration(spec.timeout)))
    return lines


def _checkpoint_lines(spec: JobSpec, program: Program) -> list[str]:
    """Return where a library's checkpoints are kept, and the rule of several tasks."""
    lines = []
    files = program.bundle.files if program.bundle is not None else {}
    if spec.task_count > 1:
        rule = expected_rule(files, spec.restore or "auto")
        lines.append(_("Checkpoints {rule}").format(rule=rule))
    if spec.checkpoint_links:
        names = ", ".join(f"{one_line(name)}/" for name in spec.checkpoint_links)
        lines.append(_("Kept        {names} in SUBMARINE_CHECKPOINT_DIR").format(names=names))
    return lines


_ROLE_COLUMNS = ("ROLE", "TASKS", "MEMORY", "VCORES", "GPUS", "KIND", "WHERE", "COMMAND")


def role_lines(spec: JobSpec) -> list[str]:
    """Return the roles of a job as a table."""
    return columns.text(_ROLE_COLUMNS, [_role_row(spec, role) for role in spec.roles]).split("\n")


_INPUT_COLUMNS = ("INPUT", "TASK", "MODE", "FILES", "SIZE")


def input_lines(inputs: Sequence[TaskInput], advice: Sequence[str] = ()) -> list[str]:
    """Return files and bytes of each input that each task gets, as a table; then the advice."""
    if not inputs:
        return []
    rows = [
        (
            item.name,
            item.task,
            item.mode,
            "?" if item.files is None else str(item.files),
            "?" if item.size is None else size_words(item.size),
        )
        for item in inputs[:_MAX_INPUTS]
    ]
    lines = columns.text(_INPUT_COLUMNS, rows).split("\n")
    if len(inputs) > _MAX_INPUTS:
        more = _("… and {number} more; --json lists them all")
        lines.append(more.format(number=len(inputs) - _MAX_INPUTS))
    if advice:
        lines += ["", *map(one_line, advice)]
    return ["", *lines, ""]


def _role_row(spec: JobSpec, role: Role) -> tuple[str, ...]:
    tasks = str(role.instances)
    if role.least not in (None, role.instances):
        tasks = _("{least} to {most}").format(least=role.least, most=role.instances)
    size = role.resources
    placement = [_("label {label}").format(label=role.node_label)] if role.node_label else []
    placement += [*role.nodes, *(_("rack {rack}").format(rack=rack) for rack in role.racks)]
    placement += [_("not {node}").format(node=node) for node in role.avoid]
    placement += [_("spread")] if role.spread else []
    placement += [_("after {role}").format(role=other) for other in role.after]
    return (
        role.name,
        tasks,
        format_memory(size.memory),
        str(size.vcores),
        str(size.gpus),
        role.kind,
        one_line(", ".join(placement) or _("anywhere"), 40),
        _command(spec, role),
    )


def _command(spec: JobSpec, role: Role) -> str:
    if role.command in (TENSORBOARD_COMMAND, TENSORBOARD_HISTORY):
        history = role.command == TENSORBOARD_HISTORY
        return _("TensorBoard of all jobs") if history else _("TensorBoard")
    if role.command is not None:
        return one_line(role.command)
    python = role.python or spec.python
    return one_line(" ".join((python, spec.program or "", *spec.args)))


def _container(container: Mapping[str, Any]) -> str:
    rest = dict(container)
    what = one_line(str(rest.pop("what", "program")))
    rest.pop("role", None)
    count = rest.pop("count", 1)
    what = what if count == 1 else f"{count} x {what}"
    size = []
    if "memory" in rest:
        size.append(_("memory {memory} MiB").format(memory=rest.pop("memory")))
    size += [f"{one_line(str(key))} {one_line(str(value))}" for key, value in rest.items()]
    return f"{what}: {', '.join(size)}"


def _bundle(spec: JobSpec, program: Program) -> list[str]:
    bundle = program.bundle
    files = bundle.files if bundle is not None else {}
    data = []
    streams = any(item.mode == "stream" for item in spec.inputs)
    if streams or uses_data(files, [role.command or "" for role in spec.roles]):
        data = [_("Library     submarine_data comes with the job")]
    if bundle is None:
        return [*data, _("Bundle      none")]
    lines = [*data, _("Bundle      sha256 {digest}").format(digest=bundle.digest)]
    for name, content in sorted(bundle.files.items())[:_MAX_FILES]:
        marker = _("  (the program)") if name == bundle.program else ""
        lines.append(f"            {one_line(name)}  {len(content)} B{marker}")
    if len(bundle.files) > _MAX_FILES:
        more = _("            … and {number} more")
        lines.append(more.format(number=len(bundle.files) - _MAX_FILES))
    return lines


def _finding_lines(refusals: Sequence[str], plan: Plan, findings: Sequence[Finding]) -> list[str]:
    lines = [_("refused     {message}").format(message=one_line(text)) for text in refusals]
    lines += [f"{item.level!s:<11} {finding_line(item)}" for item in findings]
    lines += [_("warning     {message}").format(message=one_line(text)) for text in plan.warnings]
    return ["", *lines] if lines else ["", _("No findings.")]


def _value(
    spec: JobSpec,
    plan: Plan,
    program: Program,
    findings: Sequence[Finding],
    refusals: Sequence[str],
    inputs: Sequence[TaskInput],
    *,
    refused: bool,
) -> dict[str, Any]:
    bundle = program.bundle
    files = {name: len(content) for name, content in bundle.files.items()} if bundle else {}
    return {
        "submitted": False,
        "refused": refused,
        "spec": json.loads(spec.to_bytes()),
        "plan": {
            "placement": plan.placement,
            "containers": [dict(item) for item in plan.containers],
            "overhead": plan.overhead,
            "warnings": list(plan.warnings),
            "errors": list(plan.errors),
            "extra": dict(plan.extra),
        },
        "refusals": list(refusals),
        "findings": [item.to_json() for item in findings],
        "inputs": [item._asdict() for item in inputs],
        "bundle": {"digest": bundle.digest if bundle else None, "files": files},
    }
