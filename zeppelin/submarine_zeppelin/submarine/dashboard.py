"""The former interpreter's words done: its form, its job of a note, its TensorBoard of a user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from submarine_jobs.client import Job
from submarine_jobs.errors import JobNotFoundError, UsageError
from submarine_jobs.text import escaped_line
from submarine_zeppelin.interface import properties as settings
from submarine_zeppelin.notes import legacy as former
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.job_index import KnownJobs

Forms = Mapping[str, Any] | None
_USAGE = """\
The commands of the former submarine interpreter, each a line of a paragraph:
  dashboard           a form in the paragraph: fields, and a list of what to do
  JOB_RUN, JOB_STOP   run what the form says; end it
  TENSORBOARD_RUN, TENSORBOARD_STOP   a TensorBoard over all of your jobs; end it
  CLEAN               forget the form's values and what this note's paragraphs show
The options of the Submarine command line are taken by their own names:
  run tf-job-001 --num_workers 2 --worker_resources memory=8G,vcores=2,gpu=1 \\
      --input_path hdfs://default/data --worker_launch_cmd "python main.py %input_path%"

"""


#: The page's style sheets take the triangle away, and with it all that tells to click.
_SUMMARY = "display:list-item;cursor:pointer;opacity:.72"


class Dashboard:
    """The former commands in one paragraph.

    Parameters
    ----------
    execute
        Runs words of our grammar in that paragraph; whether it went well.
    """

    def __init__(
        self, frontend: ZeppelinFrontend, execute: Callable[[Sequence[str]], bool]
    ) -> None:
        self._frontend = frontend
        self._execute = execute

    def perform(self, word: str) -> tuple[bool, Forms]:
        """Do one of them; whether it went well, and the form where it has changed."""
        frontend = self._frontend
        if word == former.USAGE:
            frontend.page.say(_USAGE)
            return self._execute(["--help"]), None
        if word == former.CLEAN:
            return self._clean(), {"params": {}, "forms": {}}
        frontend.page.form = True
        fields = former.Fields.of(frontend.context.params)
        form = fields.form(
            distributed=former.distributed(frontend.properties),
            checkpoint=former.checkpoint_path(frontend.properties, frontend.context),
        )
        act = fields.action if word == former.DASHBOARD else word
        try:
            return self._act(act, fields), form
        except UsageError as error:
            # The form stays, so that what is missing can be put in.
            frontend.page.say(str(error))
            return False, form

    def _act(self, act: str, fields: former.Fields) -> bool:
        context = self._frontend.context
        if act == former.JOB_RUN:
            if fields.clean_checkpoint:
                self._clean_checkpoint()
            return self._execute(former.run_words(self._frontend.properties, fields, context))
        if act == former.JOB_STOP:
            return self._stop(former.job_name(context))
        if act == former.TENSORBOARD_RUN:
            running = self._running(former.board_name(context))
            if running is None:
                return self._execute(former.board_words(context))
            self._frontend.show(running)
            return True
        if act == former.TENSORBOARD_STOP:
            return self._stop(former.board_name(context))
        return self._look()

    def _look(self) -> bool:
        """The last job of the form, and what the settings say of the next."""
        try:
            self._frontend.show(self._job(former.job_name(self._frontend.context)))
        except JobNotFoundError:
            self._frontend.page.say(
                "The form has run no job of this note yet. Fill it in, choose "
                f"{former.ACTIONS[former.JOB_RUN]!r} in its list, and run this paragraph."
            )
        rows = "".join(
            f'<tr><td style="padding-right:16px">{escaped_line(item.name)}</td><td>'
            f"{escaped_line(settings.text(self._frontend.properties, item.name))}</td></tr>"
            for item in settings.PROPERTIES
            if item.name.startswith(("tf.", "machinelearning.", "submarine.yarn"))
        )
        self._frontend.page.html(
            f'<details style="font-size:12px"><summary style="{_SUMMARY}">'
            "What the interpreter's settings say of its jobs</summary>"
            f"<table>{rows}</table></details>"
        )
        self._frontend.page.show()
        return True

    def _stop(self, name: str) -> bool:
        job = self._running(name)
        if job is None:
            self._frontend.page.say(f"No job {name} is running.")
            return True
        return self._execute(["cancel", job.id])

    def _job(self, name: str) -> Job:
        found = self._frontend.session(self._frontend.config()).job(name)
        if found.name != name:
            raise JobNotFoundError(f"There is no job {name}.", "")
        return found

    def _running(self, name: str) -> Job | None:
        try:
            found = self._job(name)
        except JobNotFoundError:
            return None
        return None if found.record().state.ended else found

    def _clean_checkpoint(self) -> None:
        path = former.checkpoint_path(self._frontend.properties, self._frontend.context)
        if not path:
            raise UsageError(
                "There is no checkpoint path to clean.", "Set tf.checkpoint.path, or untick it."
            )
        former.check_cleanable(path)
        if self._running(former.job_name(self._frontend.context)) is not None:
            raise UsageError(
                f"{path[:200]} is not cleaned: the job that writes there is running.",
                "Stop the job first.",
            )
        storage, _ = self._frontend.session(self._frontend.config()).backend().job_root()
        place = storage.path_of(path)
        if place is None:
            raise UsageError(
                f"{path[:200]} does not lie in {storage.prefix}, so it cannot be cleaned from here."
            )
        storage.delete(place, recursive=True)
        self._frontend.page.say(f"{path} was cleaned.")

    def _clean(self) -> bool:
        config = self._frontend.config()
        known = KnownJobs.of(config.profile)
        rows = known.open(self._frontend.context.note_id)
        for row in rows:
            if row.user == self._frontend.context.user:
                known.close(row.job_id)
        self._frontend.page.say(
            "The form's values are forgotten. Jobs go on; `%submarine list` shows them."
        )
        return True
