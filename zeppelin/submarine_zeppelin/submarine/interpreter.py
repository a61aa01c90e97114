"""The interpreter ``%submarine``, which runs commands of ``submarine``.

The note is the program. Job cards are updated after the run of their paragraph has ended.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Mapping

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import complete_below
from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_zeppelin.display import CardUpdater, Page
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
from submarine_zeppelin.notes import (
    error_text,
    interpreter_names,
    normalize_newlines,
    parse_cell_verb,
    read_note,
)
from submarine_zeppelin.submarine.command_runner import CommandRunner, show_outcome, waits
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.interruption import Interruption
from submarine_zeppelin.submarine.job_index import ParagraphJob
from submarine_zeppelin.submarine.recovery import JobRecovery
from submarine_zeppelin.submarine.tensorboards import LocalTensorBoards

log = logging.getLogger(__name__)
#: Maximum number of pages in memory, of pages without active jobs, and of characters in all. The
#: oldest pages without active jobs are removed first. A page with a card takes about 40 kB.
_MAX_PAGES, _MAX_ENDED, _MAX_SIZE = 500, 100, 16 << 20


class SubmarineInterpreter(Interpreter):
    """Interpreter of one Zeppelin session; the default interpreter of the group."""

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._pages: dict[ParagraphKey, Page] = {}
        self._stops: dict[ParagraphKey, Interruption] = {}
        self._card_updater = CardUpdater()
        self._tensorboards = LocalTensorBoards()
        session_ids = f"{server.group} {session}"
        self._recovery = JobRecovery(
            properties, server, self._card_updater, session_ids, self._register_page, self._show_run
        )

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run the paragraph's commands in order, up to the first that fails."""
        interpreter_names(context.note_id).learn("submarine", context.text)
        page, stop = Page(output, output_limit(self.properties)), Interruption()
        self._begin(context, page, stop)
        forms = None
        try:
            if context.recovering:
                return stop.run(lambda: self._recover(context, page))
            succeeded, forms = stop.run(lambda: self._run_commands(text, context, page, stop))
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except KeyboardInterrupt:
            page.add_text(_("Stopped."))
            succeeded = False
        except SubmarineError as error:
            page.add_text(error_text(error))
            succeeded = False
        finally:
            with self._lock:
                if self._stops.get(context.key) is stop:
                    del self._stops[context.key]
        if succeeded:
            page.show()
            return Result(Code.KEEP, forms=forms)
        return Result(Code.ERROR, page.messages(), forms)

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
            page = self._pages.get(context.key)
        if page is None or page.form or not page.started:
            return False
        return any(not card.ended.is_set() for card in page.cards)

    def progress(self, context: Context) -> int:
        """Return the progress of the paragraph's newest job."""
        with self._lock:
            page = self._pages.get(context.key)
        cards = page.cards if page is not None else []
        return cards[-1].progress if cards else 0

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
        frontend = self._frontend(context, Page(self.server.output(context), 1 << 16), read=False)
        return [
            Completion(word, word)
            for word in complete(words, frontend)
            if word.startswith(words[-1]) and shlex.quote(word) == word
        ]

    def close(self) -> None:
        """Stop all updates and TensorBoards. Jobs continue."""
        self._card_updater.close()
        self._tensorboards.close()

    def _run_commands(
        self, text: str, context: Context, page: Page, stop: Interruption
    ) -> tuple[bool, Mapping[str, object] | None]:
        """Run the commands; return whether they succeeded, and the form if it has changed."""
        self._recovery.resume(context)
        frontend = self._frontend(context, page)
        try:
            runner = CommandRunner(frontend, self.properties, self._tensorboards, stop)
            return runner.run(text)
        finally:
            # Cards keep the front end in memory; drop its copy of the paragraphs.
            frontend.note = []

    def _begin(self, context: Context, page: Page, stop: Interruption) -> None:
        with self._lock:
            before = self._pages.pop(context.key, None)
            self._pages[context.key] = page
            self._stops[context.key] = stop
            self._remove_old(context.key)
        if before is not None:
            before.supersede()
            self._card_updater.remove(before)

    def _remove_old(self, newest: ParagraphKey) -> None:
        sizes = {key: page.size for key, page in self._pages.items() if key != newest}
        active = {
            key for key in sizes if not all(card.ended.is_set() for card in self._pages[key].cards)
        }
        ended = len(sizes) - len(active)
        for key in sorted(sizes, key=lambda key: key in active):
            over = len(sizes) >= _MAX_PAGES or sum(sizes.values()) > _MAX_SIZE
            if not over and (key in active or ended < _MAX_ENDED):
                return
            ended -= key not in active
            del self._pages[key], sizes[key]

    def _register_page(self, key: ParagraphKey, page: Page) -> bool:
        """Register the page of a recovered job, unless the paragraph has been run since."""
        with self._lock:
            return self._pages.setdefault(key, page) is page

    def _show_run(self, page: Page, row: ParagraphJob) -> bool:
        """Show a workflow run, with updates if it is active; return whether it has ended."""
        context = Context(row.note, row.paragraph, user=row.user)
        frontend = self._frontend(context, page, read=False)
        outcome = execute(["workflow", "status", str(row.run)], frontend)
        show_outcome(outcome, frontend)
        # An active run has already shown its display and returns no HTML.
        return bool(outcome.html)

    def _frontend(self, context: Context, page: Page, *, read: bool = True) -> ZeppelinFrontend:
        found = self.server.paragraphs(context.note_id, context.user) if read else []
        note = read_note(found, interpreter_names(context.note_id))
        return ZeppelinFrontend(
            context, self.properties, note, page, self._card_updater, self.session
        )

    def _recover(self, context: Context, page: Page) -> Result:
        """Show the jobs that the paragraph has started, after a restart of server or process."""
        frontend = self._frontend(context, page)
        jobs = self._recovery.jobs_of(context)
        for job in jobs:
            frontend.show(job)
            if waits(self.properties):
                frontend.watch(job)
        if not jobs:
            page.add_text(
                _("The interpreter was restarted during this run, which had started no job.")
            )
            return Result(Code.ERROR, page.messages())
        page.show()
        return Result(Code.KEEP)


INTERPRETER = SubmarineInterpreter
