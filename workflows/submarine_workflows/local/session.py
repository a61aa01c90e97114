"""Implementation of ``submarine workflow run``: read, check, run, report.

Used by the command and by notebooks that run a workflow.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_runtime.translation import _
from submarine_workflows.formats import FLOWS, open_workflow
from submarine_workflows.local import execution as starting
from submarine_workflows.local.checks import check_runnable, disabled_nodes
from submarine_workflows.local.execution import Source, WorkflowResult
from submarine_workflows.local.options import RunOptions
from submarine_workflows.local.preparation import PROGRAM
from submarine_workflows.model import (
    ExecutionSettings,
    Workflow,
    WorkflowError,
    check,
    commands_of,
    path_of,
    zone_of,
)
from submarine_workflows.notifications import Notice, notify
from submarine_workflows.runs import (
    Runs,
    Status,
    find_missed_runs,
    head_of,
    html_of,
    log_of,
    log_tail,
    missed_runs_sentence,
    scheduled_starts,
    view_of,
)

Now = Callable[[], float]


def source_of(path: Path, given: Iterable[str] = ()) -> Source:
    """Return the validated workflow of a file, folder or zip file.

    Parameters
    ----------
    given
        Names of parameters that the run sets.

    Raises
    ------
    WorkflowError
        With every problem.
    """
    workflow = open_workflow(path)
    problems = check(workflow, given)
    if problems:
        raise WorkflowError(problems)
    whole = path.absolute()
    if path.is_dir():
        return Source(workflow, whole, str(whole))
    if path.suffix in FLOWS:
        return Source(workflow, whole.parent, str(whole))
    return Source(workflow, whole.parent, str(whole), archive=whole)


class LocalSession:
    """Runs started by one front end."""

    def __init__(self, runs: Runs, frontend: Frontend, options: RunOptions) -> None:
        self._runs = runs
        self._frontend = frontend
        self._options = options

    def start(
        self,
        path: Path,
        only: Sequence[str],
        without: Sequence[str],
        scheduled: bool,
        now: Now,
    ) -> Outcome:
        """Run the workflow in ``path`` from the beginning."""
        return self.start_source(
            source_of(path, self._options.parameters), only, without, scheduled, now
        )

    def start_source(
        self,
        source: Source,
        only: Sequence[str],
        without: Sequence[str],
        scheduled: bool,
        now: Now,
    ) -> Outcome:
        """Run a workflow that has already been read."""
        options = self._check(source, only, without)
        if scheduled:
            self._report_missed_runs(source.workflow, now())
        try:
            ended = starting.start(source, options, self._runs, self._say, scheduled)
        except RefusedError as exc:
            if scheduled:
                self._notify(Notice("SKIPPED", str(exc), workflow=source.workflow.name))
            raise
        return self._outcome(ended, now)

    def resume(
        self,
        path: Path | None,
        name: str,
        only: Sequence[str],
        without: Sequence[str],
        now: Now,
    ) -> Outcome:
        """Continue a run."""
        source = source_of(path, self._options.parameters) if path is not None else None
        run = self._runs.find(name or (source.workflow.name if source else "last"))
        view = view_of(run)
        if source is not None and source.workflow.name != view.workflow.name:
            raise UsageError(
                _("{run} is not a run of {workflow}.").format(
                    run=run.run, workflow=source.workflow.name
                )
            )
        if source is not None and source.archive is not None:
            source = replace(source, base=run.path / "project", archive=None)
        workflow = source.workflow if source is not None else view.workflow
        found = source or Source(workflow, Path(str(view.options.get("base", "."))), view.source)
        options = self._check(found, only, without, view.options.get("notebook"))
        return self._outcome(starting.resume(run, source, options, self._say), now)

    def dry_run(self, path: Path | None, only: Sequence[str], without: Sequence[str]) -> Outcome:
        """Return the commands of every node with the known parameters, without running them."""
        if path is None:
            raise UsageError(_("--dry-run requires the file of a workflow."))
        source = source_of(path, self._options.parameters)
        options = self._check(source, only, without)
        settings = ExecutionSettings(
            notebook=options.notebook,
            outputs=options.outputs,
            on_interrupt=options.on_interrupt,
        )
        lines, value = [], []
        for flows, node in source.workflow.walk():
            where = path_of(node, flows)
            skipped = where in options.disabled
            commands = commands_of(source.workflow, node, flows, settings)
            value.append({"node": where, "skipped": skipped, "commands": commands})
            lines.append(_("{where}: skipped").format(where=where) if skipped else f"{where}:")
            lines += [f"  {shlex.join(words)}" for words in commands if not skipped]
        return Outcome("\n".join(lines), value=value)

    def _check(
        self,
        source: Source,
        only: Sequence[str],
        without: Sequence[str],
        notebook: object = "",
    ) -> RunOptions:
        written = self._options.notebook or (notebook if isinstance(notebook, str) else "")
        settings = ExecutionSettings(notebook=written, program=PROGRAM)
        base = None if source.archive is not None else source.base
        check_runnable(source.workflow, settings, base)
        return replace(self._options, disabled=disabled_nodes(source.workflow, only, without))

    def _outcome(self, ended: WorkflowResult, now: Now) -> Outcome:
        view = ended.view
        if view.status is not Status.SUCCEEDED:
            failed = next(iter(ended.failures), "")
            tail = log_tail(log_of(view, view.node(failed)), 40) if failed else []
            self._notify(
                Notice(
                    str(view.status),
                    view.reason,
                    link=str(view.folder),
                    log="\n".join(tail),
                    workflow=view.workflow.name,
                    run=view.run,
                    node=failed,
                ),
                stopped=view.status is Status.KILLED,
            )
        return Outcome(
            end_of(ended, self._frontend.command, now()),
            html=html_of(view, now()),
            value=view.to_json(),
            exit_code=ended.exit_code,
        )

    def _report_missed_runs(self, workflow: Workflow, now: float) -> None:
        starts = scheduled_starts(self._runs.of(workflow.name))
        # The current run covers its own time.
        found = find_missed_runs(
            workflow.schedule, zone_of(workflow), [*starts, now] if starts else [], now
        )
        sentence = missed_runs_sentence(workflow.name, found)
        if sentence:
            self._say(sentence)
            self._notify(Notice("MISSED", sentence, workflow=workflow.name))

    def _notify(self, notice: Notice, stopped: bool = False) -> None:
        if self._options.notify:
            notify(self._options.notify, notice, say=self._say, stopped=lambda: stopped)

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the run continues if the terminal is closed
            self._frontend.say(text)


def end_of(ended: WorkflowResult, command: str, now: float) -> str:
    """Return how a run ended, the last log lines of failed nodes, and the next commands."""
    view = ended.view
    lines = [head_of(view, now)]
    for path in list(ended.failures)[:3]:
        tail = log_tail(log_of(view, view.node(path)))
        if tail:
            lines += [
                _("Last lines of the log of {path}:").format(path=path),
                *(f"  {row}" for row in tail),
            ]
    if view.status is not Status.SUCCEEDED:
        failed = next(iter(ended.failures), "")
        named = f" {failed}" if failed else ""
        lines.append(
            _("  {command} workflow logs {run}{named}").format(
                command=command, run=view.run, named=named
            )
        )
        lines.append(
            _("  {command} workflow run --resume {run}    resume it").format(
                command=command, run=view.run
            )
        )
    return "\n".join(lines)
