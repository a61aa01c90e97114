"""Execution manager for jupyter-scheduler that runs notebooks with the headless runner.

The module is imported by the Jupyter server that configures it, and by the process that
jupyter-scheduler starts for each job. The notebook itself runs in another process
(``process``), which survives a stop long enough to end its jobs and save its output.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from jupyter_scheduler.executors import DefaultExecutionManager
from jupyter_scheduler.models import Status
from jupyter_scheduler.orm import Job, JobDefinition
from jupyter_scheduler.utils import create_output_directory

from submarine_jobs.model import WorkflowOrigin
from submarine_workflows import headless
from submarine_workflows.model import ScheduleError, read_timezone
from submarine_workflows.runs import find_missed_runs, missed_runs_sentence
from submarine_workflows.scheduler.process import MAX_REASON

#: Seconds between checks of whether a server has stopped this run.
POLL_SECONDS = 5.0


class NotebookFailedError(Exception):
    """A scheduled notebook failed; the message is shown in the list of jobs."""


class SubmarineExecutionManager(DefaultExecutionManager):  # type: ignore[misc]
    """Run a scheduled notebook as ``submarine run`` does.

    Its jobs run in parallel, are awaited at the end, and record the scheduled job as their origin.
    Stopping the run cancels them and keeps the output notebook readable.
    """

    _stopped = False

    def execute(self) -> None:
        """Run the notebook in a process that detects when this one is stopped.

        Raises
        ------
        NotebookFailedError
            If a cell or a job failed, or the notebook could not be run.
        """
        staging = Path(self.staging_paths["input"]).parent
        output = self._output()
        request = {
            "input": self.staging_paths["input"],
            "output": str(output),
            "folder": str(staging),
            "parameters": dict(self.model.parameters or {}),
            "stopped_outputs": str(Path(self.root_dir, *self._folder())),
            "database": self.db_url,
            "job": self.job_id,
            "exports": {
                word: path
                for word, path in self.staging_paths.items()
                if word in self.model.output_formats and word != "ipynb"
            },
        }
        try:
            code, reason = self._run(request)
        finally:
            self.add_side_effects_files(str(staging))
        if code:
            raise NotebookFailedError(headless.why_failed(output, code, reason))
        if "ipynb" not in self.model.output_formats:
            output.unlink(missing_ok=True)

    def _output(self) -> Path:
        """Return the path of the executed notebook, also if the output format is not requested."""
        source = Path(self.staging_paths["input"])
        return Path(self.staging_paths.get("ipynb") or source.with_suffix(".executed.ipynb"))

    def _folder(self) -> tuple[str, str]:
        """Return the path, below the server's root, where JupyterLab stores requested outputs.

        JupyterLab offers outputs only of runs that ended without being stopped.
        """
        return "jobs", create_output_directory(self.model.input_filename, self.job_id)

    def _stop_requested(self) -> bool:
        """Return whether a server that cannot signal this process has stopped the run."""
        with self.db_session() as session:
            found = session.query(Job.status).filter(Job.job_id == self.job_id).first()
        return found is None or found[0] in (Status.STOPPING, Status.STOPPED)

    def on_failure(self, e: Exception) -> None:
        """Record the failure. A stopped run is recorded as stopped."""
        if not self._stopped:
            super().on_failure(e)
            return
        with self.db_session() as session:
            own = session.query(Job).filter(Job.job_id == self.job_id)
            own.update({"status": Status.STOPPED})
            session.commit()

    def _run(self, request: dict[str, Any]) -> tuple[int, str]:
        """Return the exit code and output of the run; closing its standard input stops it.

        A signal, such as Ctrl-C for the server's process group, also stops it; this method waits
        until the run has saved its output.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)  # a process that inherited the pipe must not block the read
        with os.fdopen(reading, "rb", buffering=0) as pipe, headless.SignalRecorder() as signals:
            try:
                child = subprocess.Popen(
                    # -P: a file beside the notebook may have the name of a module.
                    [sys.executable, "-P", "-m", "submarine_workflows.scheduler.process"],
                    stdin=subprocess.PIPE,
                    cwd=request["folder"],
                    env={**os.environ, **self._origin().to_environment()},
                    pass_fds=(writing,),
                    # Signals to the server's process group, such as Ctrl-C, are forwarded by
                    # closing the pipe.
                    start_new_session=True,
                )
            finally:
                os.close(writing)
            assert child.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # its exit code gives the reason
                child.stdin.write(json.dumps({**request, "report_to": writing}).encode() + b"\n")
                child.stdin.flush()
            signals.listener = partial(_request_stop, child)
            if signals.received is not None:
                _request_stop(child)
            while True:
                try:
                    code = child.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if signals.received is None and not self._stopped and self._stop_requested():
                        self._stopped = True
                        _request_stop(child)
            return code, (pipe.read(MAX_REASON) or b"").decode("utf-8", "replace")

    def before_start(self) -> None:
        """Record the start of the run, and report scheduled runs that were missed before it."""
        super().before_start()
        sentence = self._missed_runs()
        if sentence:
            print(sentence, file=sys.stderr)
            with self.db_session() as session:
                own = session.query(Job).filter(Job.job_id == self.job_id)
                own.update({"status_message": sentence[: headless.MAX_MESSAGE]})
                session.commit()

    def _missed_runs(self) -> str:
        """Return a sentence on the runs missed since the previous run, or an empty string."""
        definition = self._definition
        if definition is None or not definition.schedule:
            return ""
        with self.db_session() as session:
            before = (
                session.query(Job.create_time)
                .filter(Job.job_definition_id == self.model.job_definition_id)
                .filter(Job.create_time < self.model.create_time)
                .order_by(Job.create_time.desc())
                .first()
            )
        if before is None:
            return ""
        # A changed or resumed definition starts a new series.
        since = max(before[0], definition.update_time or 0)
        starts = [moment / 1000 for moment in (since, self.model.create_time)]
        try:
            zone = read_timezone(definition.timezone or "UTC")
            found = find_missed_runs(definition.schedule, zone, starts, starts[-1])
        except ScheduleError:
            return ""  # croniter accepts expressions that Quartz and crontab do not
        return missed_runs_sentence(str(self.model.name), found)

    @cached_property
    def _definition(self) -> Any:
        """Return the definition of this job, or None."""
        wanted = self.model.job_definition_id
        if not wanted:
            return None
        with self.db_session() as session:
            every = session.query(JobDefinition)
            return every.filter(JobDefinition.job_definition_id == wanted).first()

    def _origin(self) -> WorkflowOrigin:
        """Return the origin that the notebook's jobs record: the scheduled job."""
        definition = self._definition
        name = self.model.name if definition is None else definition.name
        origin = WorkflowOrigin.from_environment()
        notebook = Path(self.model.input_filename).stem
        return WorkflowOrigin(str(name), self.job_id, notebook, origin.yarn_tags)


def _request_stop(child: subprocess.Popen[bytes]) -> None:
    """Close the pipe; the run stops when it reads the end of its standard input."""
    if child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()
