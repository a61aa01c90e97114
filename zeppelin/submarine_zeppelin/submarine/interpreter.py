"""``%submarine``: each line of the paragraph is a command, with the verbs of everywhere.

The note is the program, its jobs are cards that live on after the paragraph has ended. Knows the
life of a paragraph: begun, stopped, recovered, shown; what its lines do is ``lines``' matter.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Mapping

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import complete_below
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.display import Page, Refresher
from submarine_zeppelin.interface import (
    Code,
    Completion,
    Context,
    Interpreter,
    Output,
    ParagraphGoneError,
    Place,
    Result,
    Server,
    properties as settings,
)
from submarine_zeppelin.notes import body_of, plain, read_note, sentence, spellings_of
from submarine_zeppelin.submarine.command_runner import Lines, show_outcome, waits
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.interruption import Stop
from submarine_zeppelin.submarine.job_index import Placed
from submarine_zeppelin.submarine.recovery import Resumer
from submarine_zeppelin.submarine.tensorboards import LocalBoards

log = logging.getLogger(__name__)
#: Pages that are kept, those of them whose jobs have ended, and their characters: the oldest whose
#: jobs have ended are let go first. A page with a card takes some 40 kB.
_MAX_PAGES, _MAX_ENDED, _MAX_HELD = 500, 100, 16 << 20


class SubmarineInterpreter(Interpreter):
    """The default entry of one of Zeppelin's sessions."""

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._pages: dict[Place, Page] = {}
        self._stops: dict[Place, Stop] = {}
        self._refresher = Refresher()
        self._boards = LocalBoards()
        place = f"{server.group} {session}"
        self._resumer = Resumer(
            properties, server, self._refresher, place, self._adopt, self._show_run
        )

    def interpret(self, text: str, context: Context, output: Output) -> Result:
        """Run the paragraph's commands one after the other, up to the first that fails."""
        spellings_of(context.note_id).learn("submarine", context.text)
        page, stop = Page(output, settings.output_limit(self.properties)), Stop()
        self._begin(context, page, stop)
        forms = None
        try:
            with stop.here():
                if context.recovering:
                    return self._recover(context, page)
                self._resumer.resume(context)
                frontend = self._frontend(context, page)
                try:
                    good, forms = Lines(frontend, self.properties, self._boards).perform(text)
                finally:
                    # The page's cards keep it: each would hold all paragraphs of the note.
                    frontend.note = []
        except ParagraphGoneError:
            return Result(Code.ERROR)
        except KeyboardInterrupt:
            page.say("Stopped.")
            good = False
        except SubmarineError as error:
            page.say(sentence(error))
            good = False
        finally:
            with self._lock:
                if self._stops.get(context.place) is stop:
                    del self._stops[context.place]
        if good:
            page.show()
            return Result(Code.KEEP, forms=forms)
        return Result(Code.ERROR, page.messages(), forms)

    def cancel(self, context: Context) -> None:
        """Stop: as Ctrl-C."""
        with self._lock:
            stop = self._stops.get(context.place)
        if stop is not None:
            stop.wish()

    def lane(self, context: Context) -> str:
        """Every paragraph by itself: one may cancel the job that another one waits for."""
        return "/".join(context.place)

    def active(self, context: Context) -> bool:
        """Whether a job that the paragraph's ``run`` began has not ended."""
        with self._lock:
            page = self._pages.get(context.place)
        if page is None or page.form or not page.started:
            return False
        return any(not card.ended.is_set() for card in page.cards)

    def progress(self, context: Context) -> int:
        """How far the paragraph's newest job says it is."""
        with self._lock:
            page = self._pages.get(context.place)
        cards = page.cards if page is not None else []
        return cards[-1].progress if cards else 0

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """The grammar's proposals for the line that is being typed, or for a verb's text."""
        before = plain(text[:cursor])
        # As if the key that is being typed were whole: a text is told from commands by its keys.
        below = body_of(f"{before} :", 1, "") if "\n" in before else None
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
        """Nothing is written any more; jobs live on."""
        self._refresher.close()
        self._boards.close()

    def _begin(self, context: Context, page: Page, stop: Stop) -> None:
        with self._lock:
            before = self._pages.pop(context.place, None)
            self._pages[context.place] = page
            self._stops[context.place] = stop
            self._let_go(context.place)
        if before is not None:
            before.leave()
            self._refresher.leave(before)

    def _let_go(self, newest: Place) -> None:
        sizes = {place: page.size for place, page in self._pages.items() if place != newest}
        active = {
            place
            for place in sizes
            if not all(card.ended.is_set() for card in self._pages[place].cards)
        }
        ended = len(sizes) - len(active)
        for place in sorted(sizes, key=lambda place: place in active):
            over = len(sizes) >= _MAX_PAGES or sum(sizes.values()) > _MAX_HELD
            if not over and (place in active or ended < _MAX_ENDED):
                return
            ended -= place not in active
            del self._pages[place], sizes[place]

    def _adopt(self, place: Place, page: Page) -> bool:
        """Let a page that was found again be the paragraph's, unless it has been run since."""
        with self._lock:
            return self._pages.setdefault(place, page) is page

    def _show_run(self, page: Page, placed: Placed) -> bool:
        """Show the run of a workflow again; one that is under way goes on being drawn."""
        context = Context(placed.note, placed.paragraph, user=placed.user)
        frontend = self._frontend(context, page, read=False)
        outcome = execute(["workflow", "status", str(placed.run)], frontend)
        show_outcome(outcome, frontend)
        # What goes on has put its picture there itself, and gives nothing to show.
        return bool(outcome.html)

    def _frontend(self, context: Context, page: Page, *, read: bool = True) -> ZeppelinFrontend:
        found = self.server.paragraphs(context.note_id, context.user) if read else []
        note = read_note(found, spellings_of(context.note_id))
        return ZeppelinFrontend(context, self.properties, note, page, self._refresher, self.session)

    def _recover(self, context: Context, page: Page) -> Result:
        """The server has found us again, or us anew: show what the paragraph had begun."""
        frontend = self._frontend(context, page)
        jobs = self._resumer.jobs_of(context)
        for job in jobs:
            frontend.show(job)
            if waits(self.properties):
                frontend.watch(job)
        if not jobs:
            page.say("The interpreter was started again while this ran; it began no job.")
            return Result(Code.ERROR, page.messages())
        page.show()
        return Result(Code.KEEP)


INTERPRETER = SubmarineInterpreter
