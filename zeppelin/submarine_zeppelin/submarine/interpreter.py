"""The interpreter ``%submarine``, which runs commands of ``submarine``.

The note is the program. Job cards are updated after the run of their paragraph has ended.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Mapping
from typing import Any

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import complete_below
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import LiveCards
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_zeppelin.interface import (
    Code,
    Completion,
    Context,
    Interpreter,
    Output,
    ParagraphGoneError,
    ParagraphKey,
    Result,
    Server,
    output_limit,
)
from submarine_zeppelin.local import paragraph_forms
from submarine_zeppelin.memory import release_freed_memory
from submarine_zeppelin.notes import (
    expand_text,
    interpreter_names,
    normalize_newlines,
    parse_cell_verb,
    read_note,
    record_form_values,
    templates_of,
)
from submarine_zeppelin.submarine.command_runner import CommandRunner, show_outcome, waits
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.interruption import Interruption
from submarine_zeppelin.submarine.paragraph_publisher import ParagraphPublisher
from submarine_zeppelin.submarine.recovery import JobRecovery
from submarine_zeppelin.submarine.tensorboards import LocalTensorBoards

log = logging.getLogger(__name__)
#: Maximum number of outputs in memory, of outputs without active jobs, and of characters in all.
#: The oldest outputs without active jobs are removed first. One with a card takes about 40 kB.
_MAX_OUTPUTS, _MAX_ENDED, _MAX_SIZE = 500, 100, 16 << 20
#: Maximum number of cards that are updated. More than in a notebook, because there are more users.
_MAX_LIVE = 100
#: Maximum length of an error message in characters.
_MAX_MESSAGE = 50_000


class SubmarineInterpreter(Interpreter):
    """Interpreter of one Zeppelin session; the default interpreter of the group."""

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._outputs: dict[ParagraphKey, ParagraphPublisher] = {}
        self._stops: dict[ParagraphKey, Interruption] = {}
        self._live = LiveCards(_MAX_LIVE, in_page=False)
        self._tensorboards = LocalTensorBoards()
        session_ids = f"{server.group} {session}"
        self._recovery = JobRecovery(properties, session_ids, self._register, self._show_run)

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run the paragraph's commands in order, up to the first that fails."""
        interpreter_names(context.note_id).learn("submarine", context.text)
        stop = Interruption()
        publisher = ParagraphPublisher(context, output, output_limit(self.properties), stop)
        self._begin(context, publisher, stop)
        record_form_values(text, context)
        forms: Mapping[str, Any] | None = None
        failure = ""
        try:
            if context.recovering:
                return stop.run(lambda: self._recover(context, publisher))
            forms = paragraph_forms(context).to_json() if templates_of(context) else None
            succeeded, form = stop.run(lambda: self._run_commands(text, context, publisher, stop))
            forms = _joined(forms, form)
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except KeyboardInterrupt:
            succeeded, failure = False, _("Stopped.")
        except SubmarineError as error:
            succeeded, failure = False, printable(str(error), _MAX_MESSAGE)
        finally:
            with self._lock:
                if self._stops.get(context.key) is stop:
                    del self._stops[context.key]
            release_freed_memory()
        try:
            if failure:
                publisher.write(failure + "\n")
            publisher.refresh()
        except ParagraphGoneError:
            return Result(Code.ERROR)
        if succeeded:
            return Result(Code.KEEP, forms=forms)
        return Result(Code.ERROR, publisher.messages(), forms)

    def expand(self, text: str, context: Context) -> str:
        """Return the text with the values of its forms."""
        return expand_text(text, context)

    def cancel(self, context: Context) -> None:
        """Interrupt the run, as Ctrl-C does."""
        with self._lock:
            stop = self._stops.get(context.key)
        if stop is not None:
            stop.request()

    def serial_key(self, context: Context) -> str:
        """Return a key per paragraph: one may cancel a job that another one waits for."""
        return "/".join(context.key)

    def active(self, context: Context) -> bool:
        """Whether a job that the paragraph has submitted is active."""
        with self._lock:
            found = self._outputs.get(context.key)
        return found is not None and found.started and not found.form and found.active

    def progress(self, context: Context) -> int:
        """Return the progress of the paragraph's newest job."""
        with self._lock:
            found = self._outputs.get(context.key)
        jobs = found.jobs if found is not None else []
        return jobs[-1].progress if jobs else 0

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """Return completions for the current command, or for the text below a verb."""
        before = normalize_newlines(text[:cursor])
        # Add a colon, so that an incomplete key is recognized as a text and not as a command.
        below = parse_cell_verb(f"{before} :", 1, "") if "\n" in before else None
        if below is not None and (found := complete_below(below[0][0], below[1].text[:-2])):
            return [Completion(word, word) for word in found]
        line = before.rpartition("\n")[2]
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        words = [*words, ""] if not line or line[-1:].isspace() else words
        publisher = ParagraphPublisher(context, self.server.output(context), 1 << 16)
        frontend = self._frontend(context, publisher, read=False)
        return [
            Completion(word, word)
            for word in complete(words, frontend)
            if word.startswith(words[-1]) and shlex.quote(word) == word
        ]

    def close(self) -> None:
        """Stop all updates and TensorBoards. Jobs continue."""
        with self._lock:
            outputs = list(self._outputs.values())
        for one in outputs:
            one.on_gone()
        for one in outputs:
            one.pause()
        self._tensorboards.close()

    def _run_commands(
        self, text: str, context: Context, publisher: ParagraphPublisher, stop: Interruption
    ) -> tuple[bool, Mapping[str, Any] | None]:
        """Run the commands; return whether they succeeded, and the form if it has changed."""
        self._recovery.resume(context)
        frontend = self._frontend(context, publisher)
        try:
            runner = CommandRunner(frontend, self.properties, self._tensorboards, stop)
            return runner.run(text)
        finally:
            # Cards keep the front end in memory; drop its copy of the paragraphs.
            frontend.note = []

    def _begin(self, context: Context, publisher: ParagraphPublisher, stop: Interruption) -> None:
        with self._lock:
            before = self._outputs.pop(context.key, None)
            self._outputs[context.key] = publisher
            self._stops[context.key] = stop
            self._remove_old(context.key)
        if before is not None:
            before.supersede()

    def _remove_old(self, newest: ParagraphKey) -> None:
        sizes = {key: one.size for key, one in self._outputs.items() if key != newest}
        active = {key for key in sizes if self._outputs[key].active}
        ended = len(sizes) - len(active)
        for key in sorted(sizes, key=lambda key: key in active):
            over = len(sizes) >= _MAX_OUTPUTS or sum(sizes.values()) > _MAX_SIZE
            if not over and (key in active or ended < _MAX_ENDED):
                return
            ended -= key not in active
            del sizes[key]
            removed = self._outputs.pop(key)
            if key not in active:
                removed.on_gone()  # its cards would keep it in memory

    def _register(self, context: Context) -> ZeppelinFrontend | None:
        """Return a front end for a recovered job, unless the paragraph has been run since."""
        output, limit = self.server.output(context), output_limit(self.properties)
        publisher = ParagraphPublisher(context, output, limit)
        with self._lock:
            if self._outputs.setdefault(context.key, publisher) is not publisher:
                return None
        publisher.started = True
        return self._frontend(context, publisher, read=False)

    def _show_run(self, frontend: ZeppelinFrontend, run: str) -> bool:
        """Show a workflow run, with updates if it is active; return whether it has ended."""
        outcome = execute(["workflow", "status", run], frontend)
        show_outcome(outcome, frontend)
        # An active run has already shown its display and returns no HTML.
        return bool(outcome.html)

    def _frontend(
        self, context: Context, publisher: ParagraphPublisher, *, read: bool = True
    ) -> ZeppelinFrontend:
        found = self.server.paragraphs(context.note_id, context.user) if read else []
        note = read_note(found, interpreter_names(context.note_id))
        return ZeppelinFrontend(context, self.properties, note, publisher, self._live, self.session)

    def _recover(self, context: Context, publisher: ParagraphPublisher) -> Result:
        """Show the jobs that the paragraph has started, after a restart of server or process."""
        frontend = self._frontend(context, publisher)
        jobs = self._recovery.jobs_of(context)
        for job in jobs:
            frontend.show(job)
            if waits(self.properties):
                frontend.watch(job)
        if not jobs:
            frontend.say(
                _("The interpreter was restarted during this run, which had started no job.")
            )
            return Result(Code.ERROR, publisher.messages())
        publisher.refresh()
        return Result(Code.KEEP)


def _joined(
    forms: Mapping[str, Any] | None, form: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Join the forms of the text and the form of the former interpreter's commands."""
    if forms is None or form is None:
        return forms or form
    return {key: {**forms[key], **form[key]} for key in ("params", "forms")}


INTERPRETER = SubmarineInterpreter
