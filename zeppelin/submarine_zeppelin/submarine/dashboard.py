"""Commands of Zeppelin's former Submarine interpreter: dashboard form, its job, TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from submarine_jobs.client import Job
from submarine_jobs.errors import JobNotFoundError, UsageError
from submarine_jobs.text import escape_html_line
from submarine_runtime.translation import _
from submarine_zeppelin.interface import PROPERTIES, text_property
from submarine_zeppelin.notes import (
    ACTIONS,
    CLEAN,
    DASHBOARD,
    JOB_RUN,
    JOB_STOP,
    TENSORBOARD_RUN,
    TENSORBOARD_STOP,
    USAGE,
    FormFields,
    check_cleanable,
    checkpoint_path,
    is_distributed,
    job_name,
    run_words,
    tensorboard_name,
    tensorboard_words,
)
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.job_index import ParagraphJobIndex

Forms = Mapping[str, Any] | None
_USAGE = _("""\
Commands of Zeppelin's former Submarine interpreter, one per line:
  dashboard           show a form with fields and a list of actions
  JOB_RUN, JOB_STOP   run the job of the form; stop it
  TENSORBOARD_RUN, TENSORBOARD_STOP   run a TensorBoard of all your jobs; stop it
  CLEAN               clear the form and the index of jobs in this note's paragraphs
Options of the Submarine command line are supported by their names:
  run tf-job-001 --num_workers 2 --worker_resources memory=8G,vcores=2,gpu=1 \\
      --input_path hdfs://default/data --worker_launch_cmd "python main.py %input_path%"

""")
#: Zeppelin's style sheets remove the triangle, which shows that the element can be opened.
_SUMMARY = "display:list-item;cursor:pointer;opacity:.72"


class Dashboard:
    """Runs the legacy commands in one paragraph.

    Parameters
    ----------
    execute
        Runs a command in the paragraph and returns whether it succeeded.
    """

    def __init__(
        self, frontend: ZeppelinFrontend, execute: Callable[[Sequence[str]], bool]
    ) -> None:
        self._frontend = frontend
        self._execute = execute

    def run(self, command: str) -> tuple[bool, Forms]:
        """Run a command and return whether it succeeded, and the form if it has changed."""
        frontend = self._frontend
        if command == USAGE:
            frontend.say(_USAGE)
            return self._execute(["--help"]), None
        if command == CLEAN:
            return self._clean(), {"params": {}, "forms": {}}
        frontend.publisher.form = True
        fields = FormFields.of(frontend.context.params)
        form = fields.form(
            distributed=is_distributed(frontend.properties),
            checkpoint=checkpoint_path(frontend.properties, frontend.context),
        )
        action = fields.action if command == DASHBOARD else command
        try:
            return self._run_action(action, fields), form
        except UsageError as error:
            # Keep the form, so that the missing value can be entered.
            frontend.say(str(error))
            return False, form

    def _run_action(self, action: str, fields: FormFields) -> bool:
        context = self._frontend.context
        if action == JOB_RUN:
            if fields.clean_checkpoint:
                self._clean_checkpoint()
            return self._execute(run_words(self._frontend.properties, fields, context))
        if action == JOB_STOP:
            return self._stop(job_name(context))
        if action == TENSORBOARD_RUN:
            running = self._running(tensorboard_name(context))
            if running is None:
                return self._execute(tensorboard_words(context))
            self._frontend.show(running)
            return True
        if action == TENSORBOARD_STOP:
            return self._stop(tensorboard_name(context))
        return self._show_job()

    def _show_job(self) -> bool:
        """Show the last job of the form, and the settings for the next one."""
        try:
            self._frontend.show(self._job(job_name(self._frontend.context)))
        except JobNotFoundError:
            self._frontend.say(
                _(
                    "The form has not run a job of this note yet. Complete it, choose "
                    "{actions!r} in its list, and run this paragraph."
                ).format(actions=ACTIONS[JOB_RUN])
            )
        rows = "".join(
            f'<tr><td style="padding-right:16px">{escape_html_line(item.name)}</td><td>'
            f"{escape_html_line(text_property(self._frontend.properties, item.name))}</td></tr>"
            for item in PROPERTIES
            if item.name.startswith(("tf.", "machinelearning.", "submarine.yarn"))
        )
        self._frontend.add_html(
            f'<details style="font-size:12px"><summary style="{_SUMMARY}">'
            "Settings of the interpreter for its jobs</summary>"
            f"<table>{rows}</table></details>"
        )
        return True

    def _stop(self, name: str) -> bool:
        job = self._running(name)
        if job is None:
            self._frontend.say(_("No job {name} is running.").format(name=name))
            return True
        return self._execute(["cancel", job.id])

    def _job(self, name: str) -> Job:
        found = self._frontend.session(self._frontend.config()).job(name)
        if found.name != name:
            raise JobNotFoundError(_("There is no job {name}.").format(name=name), "")
        return found

    def _running(self, name: str) -> Job | None:
        try:
            found = self._job(name)
        except JobNotFoundError:
            return None
        return None if found.record().state.ended else found

    def _clean_checkpoint(self) -> None:
        path = checkpoint_path(self._frontend.properties, self._frontend.context)
        if not path:
            raise UsageError(
                _("There is no checkpoint path to clean."),
                _("Set tf.checkpoint.path, or clear the checkbox."),
            )
        check_cleanable(path)
        if self._running(job_name(self._frontend.context)) is not None:
            raise UsageError(
                _("{path} is not cleaned, because the job that writes there is running.").format(
                    path=path[:200]
                ),
                _("Stop the job first."),
            )
        storage, _unused = self._frontend.session(self._frontend.config()).backend().job_root()
        hdfs_path = storage.path_of(path)
        if hdfs_path is None:
            raise UsageError(
                _("{path} is not in {prefix}, so it cannot be cleaned from here.").format(
                    path=path[:200], prefix=storage.prefix
                )
            )
        storage.delete(hdfs_path, recursive=True)
        self._frontend.say(_("Cleaned {path}.").format(path=path))

    def _clean(self) -> bool:
        config = self._frontend.config()
        index = ParagraphJobIndex.of(config.profile)
        rows = index.unfinished(self._frontend.context.note_id)
        for row in rows:
            if row.user == self._frontend.context.user:
                index.mark_final(row.job_id)
        self._frontend.say(_("Cleared the form. Jobs continue; `%submarine list` shows them."))
        return True
