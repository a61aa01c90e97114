"""The steps of ``run``: find the program, check, plan, submit, wait.

Each step may refuse the job. ``run.command`` parses the options; the front end waits and prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from submarine_jobs import doctor  # Lazy: a submission needs none of its modules.
from submarine_jobs.client import start_or_join
from submarine_jobs.commands.grammar import cache_queues, confirm_foreign, wait_for
from submarine_jobs.commands.run.checks import check_run
from submarine_jobs.commands.run.dry_run import dry_run_outcome, finding_line
from submarine_jobs.commands.run.program import Program, find_program
from submarine_jobs.commands.run.values import check_values, pack_values
from submarine_jobs.datasets import resolve_datasets
from submarine_jobs.errors import RefusedError, SubmarineError, UsageError, no_cluster, with_job
from submarine_jobs.frontends import ASKING, JOB_FAILED, WAITING, Frontend, Outcome, SubmitProgress
from submarine_jobs.inputs import TaskInput, inputs_of_tasks, mode_advice
from submarine_jobs.model import Headless, WorkflowOrigin
from submarine_jobs.options import RunOptions, check_options, spec_from_options
from submarine_jobs.submit import probe_job_root, validate
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.backends import Backend, Plan
    from submarine_jobs.checks import Finding
    from submarine_jobs.client import Job
    from submarine_jobs.model import JobSpec


@dataclass(frozen=True)
class CheckedRequest:
    """A request that has been checked and planned."""

    spec: JobSpec
    plan: Plan
    program: Program
    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """Findings that stop a submit unless it is forced."""
        return [item for item in self.findings if str(item.level) == "error"]


def run_job(
    options: RunOptions, frontend: Frontend, find: Callable[[], Program] | None = None
) -> Outcome:
    """Run a job with ``options``.

    Parameters
    ----------
    find
        Returns the program; None: ``find_program``.

    Raises
    ------
    UsageError
        If the request is wrong, or the checks found an error and ``--force`` is not given.
    RefusedError
        If the cluster would refuse the job; ``--force`` does not change that.
    ClusterError
        If the cluster does not answer.
    """
    started = time.monotonic()
    find = find or (lambda: find_program(options, frontend))
    check_options(options)
    config = frontend.config(options.config_options)
    if config.profile.backend is None:
        if options.program is not None:
            # A missing file is reported before a missing cluster.
            find()
        raise no_cluster()
    session = frontend.session(config)
    backend = session.backend()
    if not options.dry_run:
        backend.prepare()
    program = find()
    named = options if options.name is not None else replace(options, name=program.name)
    if named.resume_from is not None:
        earlier = session.job(named.resume_from)
        why = _("what your program loads of its checkpoint may run their code")
        if not confirm_foreign(
            earlier, frontend, _("Use"), why, yes=options.force, option="--force", runs_code=True
        ):
            return Outcome(_("Nothing was submitted."), value=None, exit_code=JOB_FAILED)
        named = replace(named, resume_from=earlier.id)
    spec = spec_from_options(named, config.profile, program.bundle, notebook=program.notebook)
    # A command line that does not wait ends at once, and cannot renew a lease.
    renews = frontend.kind != "cli" or options.wait
    spec = _with_origin(replace(spec, cell_id=frontend.launching_cell), renews=renews)
    spec = resolve_datasets(spec, lambda: session.datasets(backend.name))
    with SubmitProgress(frontend) as line, ThreadPoolExecutor(1, "submarine-plan") as pool:
        # The plan is made while the program is checked.
        planned = pool.submit(backend.plan, spec)
        if backend.name != "local":
            line.show(ASKING, 0, 0)
        findings = check_run(spec, program, frontend)
        checked = CheckedRequest(spec, planned.result(), program, findings)
    # Store the queues of the plan for completion.
    cache_queues(config, [str(name) for name in checked.plan.extra.get("queues") or []])
    if options.dry_run:
        return _dry_run(checked, backend, frontend, force=options.force)
    _stop_or_warn(checked, frontend, force=options.force)
    spec, values = pack_values(spec, frontend, lambda: session.datasets(backend.name))
    if options.verbose:
        frontend.say(
            _("Checked in {seconds:.1f} s; {placement}").format(
                seconds=time.monotonic() - started, placement=checked.plan.placement
            )
        )

    def submit(claim: Callable[[str], bool] | None) -> Job:
        with SubmitProgress(frontend) as line:
            job = session.submit(spec, program.bundle, values, checked.plan, line.show, claim)
            if backend.name != "local":
                line.show(WAITING, 0, 0)
            return job

    if frontend.claim is not None:
        job, joined = submit(frontend.claim), False
    else:
        job, joined = start_or_join(session, spec, frontend.launching_place, submit, frontend.say)
    with with_job(job):
        if options.verbose:
            frontend.say(
                _("Accepted after {seconds:.1f} s: {job_dir}").format(
                    seconds=time.monotonic() - started, job_dir=job.job_dir
                )
            )
        if options.wait:
            waited = wait_for(job, frontend, on_interrupt=options.on_interrupt)
            return replace(waited, value={**_facts(job, findings), "record": waited.value})
        text = _submitted(job, frontend, joined=joined)
        return Outcome(text=text, value=_facts(job, findings), job=job)


def _with_origin(spec: JobSpec, *, renews: bool) -> JobSpec:
    """Return the spec with the workflow that starts the job and the settings of the runner."""
    origin, headless = WorkflowOrigin.from_environment(), Headless.from_environment()
    return replace(
        spec,
        workflow=origin.workflow or None,
        workflow_run=origin.run or None,
        workflow_node=origin.node or None,
        yarn_tags=origin.yarn_tags,
        lease=headless.lease if headless and renews else None,
        run_id=(headless.run_id or None) if headless else None,
    )


def _stop_or_warn(checked: CheckedRequest, frontend: Frontend, *, force: bool) -> None:
    """Raise the errors that prevent a submission; show the other findings."""
    if checked.plan.errors:
        raise RefusedError(" ".join(checked.plan.errors), _("Nothing was submitted."))
    errors = checked.errors
    if errors and not force:
        lines = [finding_line(item) for item in errors[:10]]
        if len(errors) > 10:
            lines.append(_("… and {number} more").format(number=len(errors) - 10))
        last = _("Nothing was submitted; --force submits it nevertheless.")
        if len(errors) == 1:
            raise UsageError(lines[0], last)
        head = _("The program has {number} errors.").format(number=len(errors))
        raise UsageError("\n".join([head, *lines, last]))
    for item in checked.findings:
        frontend.say(f"{item.level}: {finding_line(item)}")
    for text in checked.plan.warnings:
        frontend.say(_("warning: {text}").format(text=text))


def _dry_run(
    checked: CheckedRequest, backend: Backend, frontend: Frontend, *, force: bool
) -> Outcome:
    """Return the report of a dry run, with all refusals in the order of a submission."""
    has_bundle = checked.program.bundle is not None
    valid = validate(backend, checked.spec, has_bundle=has_bundle, plan=checked.plan)
    refusals = list(valid.refusals)
    inputs: list[TaskInput] = []
    advice: list[str] = []
    try:
        check_values(checked.spec, frontend)
    except UsageError as error:
        # A submission packs the values right after it has checked the plan.
        refusals.insert(1 if checked.plan.errors else 0, error)
    try:
        storage, root = backend.job_root()
        inputs = inputs_of_tasks(valid.spec, storage, root, valid.reached)
        advice = mode_advice(inputs, backend.free_disk()) if inputs else []
    except SubmarineError as error:
        refusals.append(error)
    unwritable = probe_job_root(backend)
    if unwritable is not None:
        refusals.append(unwritable)
    warnings = (*checked.plan.warnings, *doctor.cuda_warnings(checked.spec, backend.profile))
    return dry_run_outcome(
        valid.spec if valid.reached.snapshots else checked.spec,
        replace(checked.plan, warnings=warnings),
        checked.program,
        checked.findings,
        refusals,
        inputs,
        advice,
        force=force,
    )


def _submitted(job: Job, frontend: Frontend, *, joined: bool) -> str:
    message = _("{id} is joined.") if joined else _("{id} is submitted.")
    return (
        message
        + "\n"
        + _(
            "  {command} logs -f {id}    follow its log\n"
            "  {command} show {id}       see how it is\n"
            "  {command} cancel {id}     end it"
        )
    ).format(id=job.id, command=frontend.command)


def _facts(job: Job, findings: list[Finding]) -> Mapping[str, Any]:
    return {
        "job_id": job.id,
        "name": job.name,
        "job_dir": job.job_dir,
        "backend": job.backend.name,
        "findings": [item.to_json() for item in findings],
    }
