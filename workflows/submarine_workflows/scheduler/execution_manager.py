"""jupyter-scheduler's jobs, executed by the headless runner: ``SubmarineExecutionManager``.

Imported by a Jupyter server that names it in its configuration, and by the process that
jupyter-scheduler starts for each job. The notebook itself runs in a process of its own
(``scheduler_run``), which outlives a stop long enough to end its jobs and to leave its output.
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

from submarine_jobs.model import Origin
from submarine_workflows.headless import MAX_MESSAGE, Traps, why_failed
from submarine_workflows.model import ScheduleError, read_timezone
from submarine_workflows.runs import missed, missed_sentence
from submarine_workflows.scheduler.parameters import value_of
from submarine_workflows.scheduler.process import MAX_SAID

#: Seconds between two looks at whether a later server wants this run to stop.
LOOK_SECONDS = 5.0


class NotebookFailedError(Exception):
    """A scheduled notebook did not end well; the message is what the list of jobs shows."""


class SubmarineExecutionManager(DefaultExecutionManager):  # type: ignore[misc]
    """Runs a scheduled notebook as ``submarine run`` does.

    Its jobs run beside each other and are waited for at the end; they know the scheduled job that
    they belong to; a stop ends them and leaves the output notebook readable.
    """

    _stopped = False

    def execute(self) -> None:
        """Run the notebook, in a process that notices when this one is stopped.

        Raises
        ------
        NotebookFailedError
            If a cell or a job failed; also for a notebook that could not be run at all.
        """
        staging = Path(self.staging_paths["input"]).parent
        output = self._output()
        orders = {
            "input": self.staging_paths["input"],
            "output": str(output),
            "folder": str(staging),
            "parameters": {k: value_of(v) for k, v in (self.model.parameters or {}).items()},
            "kept": str(Path(self.root_dir, *self._folder())),
            "database": self.db_url,
            "job": self.job_id,
            "exports": {
                word: path
                for word, path in self.staging_paths.items()
                if word in self.model.output_formats and word != "ipynb"
            },
        }
        try:
            code, said = self._run(orders)
        finally:
            self.add_side_effects_files(str(staging))
        if code:
            raise NotebookFailedError(why_failed(output, code, said))
        if "ipynb" not in self.model.output_formats:
            output.unlink(missing_ok=True)

    def _output(self) -> Path:
        """Where the executed notebook goes, also when nobody wants to have it."""
        source = Path(self.staging_paths["input"])
        return Path(self.staging_paths.get("ipynb") or source.with_suffix(".executed.ipynb"))

    def _folder(self) -> tuple[str, str]:
        """Where below the server's root Lab puts the outputs of a run once somebody asks for them.

        It offers them of runs only that came to an end by themselves.
        """
        return "jobs", create_output_directory(self.model.input_filename, self.job_id)

    def _asked_to_stop(self) -> bool:
        """Whether a server wants an end of this run that cannot kill us: it was started later."""
        with self.db_session() as session:
            found = session.query(Job.status).filter(Job.job_id == self.job_id).first()
        return found is None or found[0] in (Status.STOPPING, Status.STOPPED)

    def on_failure(self, e: Exception) -> None:
        """Say how the run ended; one that was stopped has not failed."""
        if not self._stopped:
            super().on_failure(e)
            return
        with self.db_session() as session:
            own = session.query(Job).filter(Job.job_id == self.job_id)
            own.update({"status": Status.STOPPED})
            session.commit()

    def _run(self, orders: dict[str, Any]) -> tuple[int, str]:
        """Exit code of the run and what it said; our own end closes its standard input.

        So does a signal, such as Ctrl-C for the server's whole group: what the run leaves is still
        waited for then.
        """
        listen, tell = os.pipe()
        os.set_blocking(listen, False)  # nobody waits for one who has it without knowing
        with os.fdopen(listen, "rb", buffering=0) as ear, Traps() as traps:
            try:
                child = subprocess.Popen(
                    # -P: a file of the notebook's may be called like a module.
                    [sys.executable, "-P", "-m", "submarine_workflows.scheduler.process"],
                    stdin=subprocess.PIPE,
                    cwd=orders["folder"],
                    env={**os.environ, **self._origin().to_environment()},
                    pass_fds=(tell,),
                    # A signal for the server's whole group, Ctrl-C for one, comes by our end.
                    start_new_session=True,
                )
            finally:
                os.close(tell)
            assert child.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # its exit code says why
                child.stdin.write(json.dumps({**orders, "tell": tell}).encode() + b"\n")
                child.stdin.flush()
            traps.listener = partial(_let_go, child)
            if traps.received is not None:
                _let_go(child)
            while True:
                try:
                    code = child.wait(LOOK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if traps.received is None and not self._stopped and self._asked_to_stop():
                        self._stopped = True
                        _let_go(child)
            return code, (ear.read(MAX_SAID) or b"").decode("utf-8", "replace")

    def before_start(self) -> None:
        """Say that the run has begun, and which ones before it never did."""
        super().before_start()
        sentence = self._missed()
        if sentence:
            print(sentence, file=sys.stderr)
            with self.db_session() as session:
                own = session.query(Job).filter(Job.job_id == self.job_id)
                own.update({"status_message": sentence[:MAX_MESSAGE]})
                session.commit()

    def _missed(self) -> str:
        """The times of the schedule since the run before this one; empty: none, or no schedule."""
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
        # Whoever changes a definition, or wakes it up, begins anew.
        since = max(before[0], definition.update_time or 0)
        starts = [moment / 1000 for moment in (since, self.model.create_time)]
        try:
            zone = read_timezone(definition.timezone or "UTC")
            found = missed(definition.schedule, zone, starts, starts[-1])
        except ScheduleError:
            return ""  # croniter reads what we do not
        return missed_sentence(str(self.model.name), found)

    @cached_property
    def _definition(self) -> Any:
        """The definition that this job was made from, or None."""
        wanted = self.model.job_definition_id
        if not wanted:
            return None
        with self.db_session() as session:
            every = session.query(JobDefinition)
            return every.filter(JobDefinition.job_definition_id == wanted).first()

    def _origin(self) -> Origin:
        """The scheduled job, as the jobs of its notebook name it."""
        definition = self._definition
        name = self.model.name if definition is None else definition.name
        given = Origin.from_environment()
        notebook = Path(self.model.input_filename).stem
        return Origin(str(name), self.job_id, notebook, given.yarn_tags)


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Close the pipe whose end a run takes for the wish to end."""
    if child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()
