"""One managed run, shared by ``papermill --engine submarine`` and ``submarine run``.

Connects manager, client, output and execution, in papermill's order of calls, and reports the jobs
that the notebook starts. Their ids are read from the job cards in the outputs, which are untrusted
text; schedulers search the log for them.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.iorw import papermill_io
from papermill.log import logger

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import SubmarineError
from submarine_jobs.extras import require_extra
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.headless.document import assign_stable_ids, mark_injected_parameters
from submarine_workflows.headless.execution import Execution
from submarine_workflows.headless.kernel import HeadlessClient
from submarine_workflows.headless.result import RunResult
from submarine_workflows.headless.saving import OutputNotebook, SavingManager, encode_notebook
from submarine_workflows.headless.settings import Settings
from submarine_workflows.headless.signals import SignalRecorder
from submarine_workflows.locations import Location, atomic_last_write, papermill_location

_APPLICATION = re.compile(r"application_\d{1,20}_\d{1,10}")
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "LOST")
_MAX_JOBS = 1000
#: nbclient's four seconds are too short on a loaded machine.
_IOPUB_TIMEOUT = 60
#: Papermill's keywords with another name in nbclient, or for its own engine only.
_UNUSED_KEYWORDS = ("input_path", "timeout", "startup_timeout", "autosave_cell_every")


class JobReporter:
    """Reports each job once per state of interest."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._reported: dict[str, tuple[str, bool]] = {}

    def report(self, data: Mapping[str, Any]) -> None:
        """Report new facts of an output: the job, its application, its end."""
        card = data.get(MIME_TYPE)
        if not isinstance(card, dict) or len(self._reported) >= _MAX_JOBS:
            return
        job_id = printable(str(card.get("job_id", "")), 200)
        state = printable(str(card.get("state", "")), 20)
        application, ended = _application(card), state in _ENDED
        if not job_id or self._reported.get(job_id) == (application, ended):
            return
        self._reported[job_id] = (application, ended)
        # A separate word: Azkaban searches for words that begin with `application_`.
        where = _(" as {application}").format(application=application) if application else ""
        self._say(f"{job_id}{where}: {state}")


def _application(card: Mapping[str, Any]) -> str:
    record = card.get("record")
    values = record.values() if isinstance(record, dict) else ()
    texts = (value for value in values if isinstance(value, str))
    return next((found[0] for text in texts if (found := _APPLICATION.fullmatch(text))), "")


def execute_managed(
    notebook: NotebookNode,
    kernel_name: str,
    settings: Settings,
    location: Location | None,
    *,
    signals: SignalRecorder,
    say: Callable[[str], None],
    on_cell_start: Callable[[int], None] | None = None,
    finish: Callable[[NotebookNode], None] | None = None,
    environment: Mapping[str, str] | None = None,
    progress_bar: Any = False,
    cwd: Path | None = None,
    **client_settings: Any,
) -> RunResult:
    """Execute ``notebook`` in place and keep it saved at ``location``.

    Parameters
    ----------
    say
        Called with a line about each job in the outputs.
    on_cell_start
        Called with the index of each cell before it starts.
    finish
        Changes the document before the last save.
    environment
        Additional variables of the kernel.
    client_settings
        Further settings of papermill's client: ``startup_timeout``, ``timeout`` (of a cell), logs.

    Raises
    ------
    SubmarineError
        If the output cannot be saved at the beginning. A failure at the end is recorded in the
        returned result as ``save_error``.
    """
    mark_injected_parameters(notebook)
    output = OutputNotebook(notebook, location)
    log_output = bool(client_settings.get("log_output"))
    manager = SavingManager(output, progress_bar=progress_bar, log_output=log_output)
    manager.notebook_start()
    output.save_initial()
    client = HeadlessClient(
        manager,
        JobReporter(say).report,
        kernel_name=kernel_name,
        log=logger,
        iopub_timeout=_IOPUB_TIMEOUT,
        resources={"metadata": {"path": str(cwd)}} if cwd else {},
        **client_settings,
    )
    try:
        with _document_file(notebook, location) as document:
            # jupyter-server passes the document's path in the same way.
            variables = {**(environment or {}), "JPY_SESSION_NAME": str(document)}
            result = Execution(manager, client, settings, signals, variables, on_cell_start).run()
    except BaseException:
        _complete_notebook(manager, finish)
        output.save_final(lambda: True)
        raise
    _complete_notebook(manager, finish)
    try:
        output.save_final(lambda: result.stop or signals.received)
    except SubmarineError as error:
        result.save_error = error
    return result


def _complete_notebook(
    manager: SavingManager, finish: Callable[[NotebookNode], None] | None
) -> None:
    manager.notebook_complete()
    if finish is not None:
        finish(manager.nb)


@contextlib.contextmanager
def _document_file(notebook: NotebookNode, location: Location | None) -> Iterator[Path]:
    """Provide a local file from which the kernel can read the document's order."""
    if location is not None and location.local is not None:
        yield location.local.absolute()
        return
    name = location.url.rstrip("/").rpartition("/")[2] if location is not None else ""
    with tempfile.TemporaryDirectory(prefix="submarine-run-") as folder:
        path = Path(folder) / (name if name.endswith(".ipynb") else "notebook.ipynb")
        path.write_bytes(encode_notebook(notebook))
        yield path


def execute_for_papermill(
    notebook: NotebookNode, kernel_name: str, keywords: dict[str, Any]
) -> NotebookNode:
    """Execute a notebook for papermill; see ``SubmarineEngine``."""
    require_extra("workflows")
    keywords = dict(keywords)
    settings = Settings.from_keywords(keywords)
    if settings.warning:
        logger.warning(settings.warning)
    output_path = keywords.pop("output_path", None)
    _find_ids(notebook, keywords.get("input_path"), settings)
    limit = keywords.pop("execution_timeout", None) or keywords.get("timeout")
    for name in _UNUSED_KEYWORDS:
        keywords.pop(name, None)
    with atomic_last_write(output_path), SignalRecorder() as signals:
        result = execute_managed(
            notebook,
            kernel_name,
            settings,
            papermill_location(output_path),
            signals=signals,
            say=logger.info,
            startup_timeout=keywords.pop("start_timeout", 60),
            timeout=limit,
            **keywords,
        )
        if result.stop is not None:
            logger.error(result.stop.why)
            if result.save_error is not None:
                logger.error(str(result.save_error))
            raise SystemExit(result.stop.exit_code)
        if result.save_error is not None:
            raise result.save_error
        if isinstance(result.error, DeadKernelError):
            raise result.error  # papermill's command has an exit code for it
    return notebook


def _find_ids(notebook: NotebookNode, source: Any, settings: Settings) -> None:
    """Replace papermill's random ids in an old document, so that a retry finds the same cells."""
    if not settings.run_id or not isinstance(source, str):
        return
    with contextlib.suppress(Exception):  # otherwise the ids are kept
        raw = json.loads(papermill_io.read(source))
        assign_stable_ids(notebook, (raw["nbformat"], raw.get("nbformat_minor", 0)) >= (4, 5))
