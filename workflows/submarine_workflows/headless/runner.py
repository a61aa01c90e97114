"""Execute a notebook for ``submarine run NOTEBOOK.ipynb``.

Found by the core through its entry point. ``managed_run`` executes the notebook.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import ConfigError, SubmarineError, UsageError
from submarine_jobs.extras import require_extra
from submarine_jobs.frontends import Outcome
from submarine_jobs.model import WorkflowOrigin, format_duration
from submarine_jobs.text import printable
from submarine_magics.commands import default_words
from submarine_runtime.translation import _
from submarine_workflows.headless.document import (
    add_run_cell,
    assign_stable_ids,
    inject,
    read_document,
    read_parameters,
    select_cells,
)
from submarine_workflows.headless.failures import notify_failure
from submarine_workflows.headless.settings import Settings
from submarine_workflows.headless.signals import SignalRecorder
from submarine_workflows.locations import (
    HdfsLocation,
    LocalLocation,
    Location,
    find_location,
    is_url,
    without_password,
)
from submarine_workflows.notifications import parse_command

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from submarine_jobs.commands.run import NotebookRun
    from submarine_jobs.frontends import Frontend
    from submarine_jobs.model import Profile

_READ_ONLY = ("http://", "https://")


def run_notebook(request: NotebookRun, frontend: Frontend) -> Outcome:
    """Execute a notebook and wait for its jobs.

    Raises
    ------
    SubmarineError
        If the notebook cannot be read, the output cannot be written, or an option is invalid;
        nothing has run.
    """
    require_extra("workflows")
    with SignalRecorder() as signals:
        return _Run(request, frontend, signals).run()


class _Run:
    """One call of the command."""

    def __init__(self, request: NotebookRun, frontend: Frontend, signals: SignalRecorder) -> None:
        self._request = request
        self._frontend = frontend
        self._signals = signals
        self._parameters: dict[str, Any] = {}
        self._choice = {"profile": request.profile, "backend": request.backend}

    def run(self) -> Outcome:
        """Run the notebook; send a notification also if the run cannot start."""
        settings = self._settings()
        try:
            return self._run(settings)
        except SubmarineError as error:
            notify_failure(
                self._request,
                self._frontend,
                str(error),
                output=without_password(self._request.output or ""),
                stopped=self._signals.was_signalled,
            )
            raise

    def _run(self, settings: Settings) -> Outcome:
        request = self._request
        if settings.warning:
            self._frontend.say(settings.warning)
        if self._frontend.interactive:
            # The notebook's process cannot ask whether to trust the project's file.
            with suppress(ConfigError):
                self._profile()
        source = find_location(request.notebook, self._profile)
        target = self._target(source)
        document = self._document(source)
        kernel = self._kernel(document)
        document = self._prepare(document, kernel, source, target)
        self._frontend.say(
            _("Executing {url}; the output is {target}.").format(
                url=printable(source.url, 200), target=_shown(target)
            )
        )
        return self._execute(document, kernel, settings, source, target)

    def _profile(self) -> Profile:
        return self._frontend.config(self._choice).profile

    def _settings(self) -> Settings:
        """Validate all options, including job options, before the run."""
        request = self._request
        if request.notify is not None:
            parse_command(request.notify)
        words = default_words(request.job_options, [], "--job")
        parse_run(["job", *words])
        return Settings(
            run_id=request.run_id,
            on_interrupt=request.on_interrupt,
            lease=request.lease,
            timeout=request.timeout,
            job_options=request.job_options,
            return_names=request.return_names,
        )

    def _target(self, source: Location) -> Location:
        wanted = self._request.output
        name = source.url.rstrip("/").rpartition("/")[2].partition("?")[0]
        stem = name.removesuffix(".ipynb") or "notebook"
        moment = datetime.now().astimezone().strftime("%Y%m%dT%H%M%S")
        default = f"{stem}-{moment}.ipynb"
        if wanted is None:
            if source.local is not None:
                return LocalLocation(source.local.with_name(default))
            if source.url.startswith(_READ_ONLY):
                return LocalLocation(Path(default))
            return find_location(f"{source.url.rpartition('/')[0]}/{default}", self._profile)
        if wanted.endswith("/") or (not is_url(wanted) and Path(wanted).expanduser().is_dir()):
            wanted = f"{wanted.removesuffix('/')}/{name}"
        target = find_location(wanted, self._profile)
        if _is_same_file(source, target):
            raise UsageError(
                _("The output would overwrite {url}.").format(url=printable(source.url, 200)),
                _("Give another name with -o."),
            )
        if isinstance(target, LocalLocation) and WorkflowOrigin.from_environment().run:
            # In a workflow each run may have a new output folder.
            target.make_directory()
        return target

    def _document(self, source: Location) -> NotebookNode:
        """Return the notebook as papermill loads it, with reproducible cell ids."""
        # cost: papermill (0.5 s); the options are checked before.
        from papermill.iorw import load_notebook_node

        document, had_ids = read_document(source)
        notebook: NotebookNode = load_notebook_node(document)
        assign_stable_ids(notebook, had_ids)
        return notebook

    def _kernel(self, document: NotebookNode) -> str:
        """Return the name of the kernel; UsageError if it is not installed."""
        # cost: jupyter_client (0.1 s); the options are checked before.
        from jupyter_client.kernelspec import KernelSpecManager

        named = document.metadata.get("kernelspec", {}).get("name")
        name = self._request.kernel or named or "python3"
        known = sorted(KernelSpecManager().find_kernel_specs())
        if name not in known:
            raise UsageError(
                _("There is no kernel named {name!r}.").format(name=printable(str(name), 80)),
                _kernel_hint(str(name), known),
            )
        return str(name)

    def _prepare(
        self, document: NotebookNode, kernel: str, source: Location, target: Location
    ) -> NotebookNode:
        # cost: papermill (0.5 s); the options are checked before.
        from papermill.execute import prepare_notebook_metadata, remove_error_markers

        request = self._request
        given = read_parameters(request.parameter_files, request.parameters)
        self._parameters = given
        document.metadata.setdefault("kernelspec", {"name": kernel, "display_name": kernel})
        language = document.metadata.get("language_info", {}).get("name") or "python"
        document = inject(document, given, kernel, language, self._frontend.say)
        prepare_notebook_metadata(document, source.url, target.url)
        remove_error_markers(document)
        if request.cells:
            select_cells(document, request.cells)
        if request.job_options:
            stem = source.url.rpartition("/")[2].removesuffix(".ipynb")
            add_run_cell(document, stem, request.cells, request.return_names)
        return document

    def _execute(
        self,
        document: NotebookNode,
        kernel: str,
        settings: Settings,
        source: Location,
        target: Location,
    ) -> Outcome:
        # cost: papermill (0.5 s); the options are checked before.
        from submarine_workflows.headless.managed_run import execute_managed
        from submarine_workflows.headless.report import Report, mark_errors

        started = time.monotonic()
        count = len(document.cells)

        def on_cell_start(index: int) -> None:
            text = _("cell {index} of {count}").format(index=index + 1, count=count)
            if self._request.verbose:
                self._frontend.say(text)
            self._frontend.show_progress(
                f"{text}, {format_duration(int(time.monotonic() - started))}"
            )

        try:
            result = execute_managed(
                document,
                kernel,
                settings,
                target,
                signals=self._signals,
                say=self._frontend.say,
                on_cell_start=on_cell_start,
                finish=mark_errors,
                cwd=source.local.absolute().parent if source.local is not None else None,
                environment=self._environment(),
            )
        finally:
            self._frontend.show_progress("")
        seconds = time.monotonic() - started
        report = Report(
            source.url,
            target.url,
            document,
            result,
            seconds,
            self._parameters,
            self._signals.was_signalled,
        )
        return report.outcome(self._frontend, self._request)

    def _environment(self) -> dict[str, str]:
        """Return variables that select the same cluster for the notebook's jobs."""
        names = {"SUBMARINE_PROFILE": "profile", "SUBMARINE_BACKEND": "backend"}
        return {name: value for name, key in names.items() if (value := self._choice[key])}


def _shown(target: Location) -> str:
    return printable(target.url, 200)


def _kernel_hint(name: str, known: list[str]) -> str:
    """Return a hint how to install or choose a kernel."""
    install = "submarine kernel install --user"
    if not known:
        return _("Install one: {install}.").format(install=install)
    choose = _("There are {known}: choose one with --kernel").format(known=", ".join(known[:10]))
    return (
        _("{choose}, or install it: {install}.").format(choose=choose, install=install)
        if name == "submarine"
        else f"{choose}."
    )


def _is_same_file(source: Location, target: Location) -> bool:
    if isinstance(source, HdfsLocation) and isinstance(target, HdfsLocation):
        return source.identity == target.identity
    if source.local is None or target.local is None:
        return source.url == target.url
    try:
        return source.local.samefile(target.local)
    except OSError:
        return False
