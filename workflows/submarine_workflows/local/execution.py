"""Start or resume a run: folder, locks, journal, runner, result.

``runner`` executes the nodes. A project's zip file is unpacked for each run, as in Azkaban.
"""

from __future__ import annotations

import os
import pwd
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from submarine_jobs.config import make_private
from submarine_jobs.errors import RefusedError, UsageError
from submarine_runtime.translation import _
from submarine_workflows.local.options import RunOptions
from submarine_workflows.local.parameters import flow_parameters
from submarine_workflows.local.preparation import NodePreparer
from submarine_workflows.local.process_guard import GRACE, ProcessGuard
from submarine_workflows.local.progress import Progress
from submarine_workflows.local.runner import Predecessor, Runner
from submarine_workflows.model import Workflow, file_name, write_workflow, zone_of
from submarine_workflows.runs import (
    Concurrent,
    FailureAction,
    Journal,
    Lock,
    RunFolder,
    Runs,
    RunView,
    Status,
    hold,
    view_of,
)

Say = Callable[[str], None]
MAX_ARCHIVE_FILES = 5000
MAX_ARCHIVE_BYTES = 1 << 30
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Source:
    """A workflow and the base of its paths.

    Attributes
    ----------
    base
        Folder that notebooks and working directories are relative to.
    file
        Path of the text; empty if there is none.
    archive
        Zip file of a project, unpacked for each run; paths refer to the unpacked files.
    """

    workflow: Workflow
    base: Path
    file: str = ""
    archive: Path | None = None


@dataclass(frozen=True)
class WorkflowResult:
    """Result of a run; ``failures`` contains a sentence for each failed node."""

    view: RunView
    exit_code: int
    failures: dict[str, str]


def start(
    source: Source, options: RunOptions, runs: Runs, say: Say, scheduled: bool
) -> WorkflowResult:
    """Run a workflow from the beginning.

    Raises
    ------
    RefusedError
        If the workflow is running and ``options.concurrent`` does not allow a second run.
    """
    name = source.workflow.name
    with ExitStack() as stack:
        with _exclusive_start(runs, name):
            alive = [run for run in runs.of(name) if run.alive]
            if alive and options.concurrent is Concurrent.SKIP:
                raise RefusedError(
                    _("{name} is already running as {run}; this run was skipped.").format(
                        name=name, run=alive[0].run
                    ),
                    _(
                        "`--concurrent pipeline` follows it node by node, `ignore` runs in "
                        "parallel."
                    ),
                )
            runs.prune(name)
            run = runs.new(name)
            _hold(run, stack)
        earlier = None
        if alive and options.concurrent is Concurrent.PIPELINE:
            earlier = Predecessor(alive[0])
            say(_("Following the active run {run}.").format(run=earlier.run))
        if source.archive is not None:
            source = replace(source, base=unpack(source.archive, run.path / "project"))
        say(f"{run.run}: {run.path}")
        return _execute(source, options, run, say, stack, None, earlier, scheduled)


def resume(run: RunFolder, source: Source | None, options: RunOptions, say: Say) -> WorkflowResult:
    """Run the nodes that have not succeeded in an earlier attempt of this run.

    Parameters
    ----------
    source
        The current workflow; None: as it was when the run started.
    options
        Unset options are taken from the run.

    Raises
    ------
    RefusedError
        If the run is active or has succeeded.
    """
    with ExitStack() as stack:
        _hold(run, stack)
        view = view_of(run)
        if view.starts and view.status is Status.SUCCEEDED:
            raise RefusedError(
                _("{run} has succeeded; there is nothing to resume.").format(run=run.run)
            )
        base = Path(str(view.options.get("base", ".")))
        source = source or Source(view.workflow, base, view.source)
        # This process holds its lock, so it appears to be active.
        lost = view.starts and view.ended is None
        stood = Status.EXECUTION_STOPPED if lost else view.status
        say(_("{run}: resuming, it was {stood}.").format(run=run.run, stood=stood))
        run.cancel.unlink(missing_ok=True)
        return _execute(source, _resumed_options(view, options), run, say, stack, view, None, False)


def _resumed_options(view: RunView, options: RunOptions) -> RunOptions:
    def text(name: str) -> str:
        value = view.options.get(name, "")
        return value if isinstance(value, str) else ""

    disabled = view.options.get("disabled", [])
    action = text("failure_action")
    return replace(
        options,
        failure_action=options.failure_action or (FailureAction(action) if action else None),
        parameters={**view.parameters, **options.parameters},
        disabled=options.disabled or frozenset(map(str, disabled)),
        outputs=options.outputs or text("outputs"),
        notebook=options.notebook or text("notebook"),
    )


@contextmanager
def _exclusive_start(runs: Runs, name: str) -> Iterator[None]:
    """Serialize the check for active runs and the creation of a run."""
    folder = runs.folder / ".starting"
    make_private(folder)
    with hold(Lock(folder / f"{file_name(name)}.lock"), 30.0) as got:
        if not got:
            raise RefusedError(
                _("Another run of {name} is being started; try again.").format(name=name)
            )
        yield


def _hold(run: RunFolder, stack: ExitStack) -> None:
    lock = Lock(run.runner_lock)
    if not lock.acquire():
        raise RefusedError(
            _("{run} is running.").format(run=run.run),
            _("`submarine workflow status {run}` shows its state.").format(run=run.run),
        )
    stack.callback(lock.release)


def _execute(
    source: Source,
    options: RunOptions,
    run: RunFolder,
    say: Say,
    stack: ExitStack,
    before: RunView | None,
    earlier: Predecessor | None,
    scheduled: bool,
) -> WorkflowResult:
    guard = _guard(run, stack, say)
    workflow = source.workflow
    began = before.started if before and before.started else time.time()
    execution = before.execution if before and before.execution else int(began * 1000)
    zone = zone_of(workflow)
    common = flow_parameters(
        workflow.name, execution, datetime.fromtimestamp(began, zone), user_name()
    )
    action = options.failure_action or FailureAction.declared(workflow.config)
    progress = Progress(workflow, action, options.disabled)
    attempts: dict[str, int] = {}
    if before is not None:
        progress.restore({node.path: (node.status, node.outputs) for node in before.nodes})
        attempts = {n.path: n.attempt + 1 for n in before.nodes if n.started is not None}
    write_workflow(run.workflow, workflow)
    journal = Journal(run.journal, say)
    stack.callback(journal.close)
    journal.add(
        "begin",
        version=1,
        run=run.run,
        workflow=workflow.name,
        start=began,
        execid=execution,
        pid=os.getpid(),
        host=socket.gethostname(),
        user=user_name(),
        file=source.file,
        parameters=dict(options.parameters),
        options={**options.to_json(), "base": str(source.base), "scheduled": scheduled},
    )
    preparer = NodePreparer(workflow, run, source.base, options, common)
    runner = Runner(progress, preparer, journal, guard, attempts, say, earlier)
    status = runner.run()
    reason = reason_of(status, runner)
    journal.add("end", status=str(status), reason=reason)
    journal.close()
    code = runner.exit_code or (0 if status is Status.SUCCEEDED else 1)
    return WorkflowResult(view_of(run, journal.unwritten()), code, runner.failures)


def _guard(run: RunFolder, stack: ExitStack, say: Say) -> ProcessGuard:
    """Start the guard process, after that of an earlier attempt has ended its processes."""
    lock = Lock(run.guard_lock)
    if not lock.acquire(0.0):
        say(_("Stopping processes of the previous attempt …"))
        if not lock.acquire(GRACE + 30.0):
            raise RefusedError(
                _("Processes of the previous attempt of {run} are still running.").format(
                    run=run.run
                )
            )
    try:
        guard = ProcessGuard(lock.file)
    finally:
        lock.release()  # now held by the shell

    def release(kind: type[BaseException] | None, *_unused: object) -> None:
        # After an unexpected error nodes may still run: the shell ends them.
        guard.release(done=kind is None)

    stack.push(release)
    return guard


def reason_of(status: Status, runner: Runner) -> str:
    """Return why a run did not succeed; empty if it did."""
    if status is Status.SUCCEEDED:
        return ""
    texts = [f"`{path}`: {why}" for path, why in list(runner.failures.items())[:10]]
    if runner.stopped:
        texts.insert(0, runner.stopped)
    return " ".join(texts) or _("The condition of one of its last nodes did not hold.")


def user_name() -> str:
    """Return the name of the current user on this machine."""
    with suppress(KeyError):
        return pwd.getpwuid(os.getuid()).pw_name
    return str(os.getuid())


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack ``archive`` into ``folder``, which is created; return the folder.

    Raises
    ------
    UsageError
        If it is not a zip file, is too large, or contains a path outside the folder.
    """
    folder.mkdir(mode=0o700)
    left = MAX_ARCHIVE_BYTES
    try:
        with zipfile.ZipFile(archive) as found:
            infos = [info for info in found.infolist() if not info.is_dir()]
            if len(infos) > MAX_ARCHIVE_FILES:
                raise UsageError(
                    _("{archive} has more than {max_archive_files} files.").format(
                        archive=archive, max_archive_files=MAX_ARCHIVE_FILES
                    )
                )
            for info in infos:
                target = folder / _inside(archive, info.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                with found.open(info) as source, target.open("xb") as file:
                    # A small zip file may unpack to any size.
                    while data := source.read(_CHUNK):
                        left -= len(data)
                        if left < 0:
                            raise UsageError(
                                _("{archive} contains more than {max_archive_bytes} MiB.").format(
                                    archive=archive, max_archive_bytes=MAX_ARCHIVE_BYTES >> 20
                                )
                            )
                        file.write(data)
                # Scripts are started by path.
                target.chmod(0o700 if info.external_attr >> 16 & 0o100 else 0o600)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as exc:
        raise UsageError(
            _("{archive} cannot be unpacked: {error}.").format(archive=archive, error=exc)
        ) from None
    return folder


def _inside(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        raise UsageError(
            _("{archive} contains the path {name!r}, which is outside the project.").format(
                archive=archive, name=name[:80]
            )
        )
    return path
