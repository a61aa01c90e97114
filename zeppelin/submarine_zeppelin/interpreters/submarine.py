"""``%submarine``: each line of the paragraph is a command, with the verbs of everywhere.

The note is the program, its jobs are cards that live on after the paragraph has ended. Knows
Zeppelin's ways (scheduled runs, Stop, recovery, the former interpreter's words); the verbs
themselves are ``submarine_jobs.commands``'s.
"""

from __future__ import annotations

import logging
import os
import shlex
import threading
from collections.abc import Mapping, Sequence

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import plugins
from submarine_jobs.commands.outcome import SUCCESS, Outcome
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_zeppelin import properties as settings
from submarine_zeppelin.interpreters import former
from submarine_zeppelin.interpreters.boards import LocalBoards
from submarine_zeppelin.interpreters.dashboard import Dashboard
from submarine_zeppelin.interpreters.mouth import ZeppelinMouth
from submarine_zeppelin.interpreters.notes import read_note, spellings_of
from submarine_zeppelin.interpreters.page import Page
from submarine_zeppelin.interpreters.refresher import Refresher
from submarine_zeppelin.interpreters.resuming import Resumer
from submarine_zeppelin.interpreters.stopping import Stop
from submarine_zeppelin.interpreters.wording import sentence
from submarine_zeppelin.paragraph import (
    Code,
    Completion,
    Context,
    Interpreter,
    Output,
    ParagraphGoneError,
    Result,
    Server,
)

log = logging.getLogger(__name__)
#: Verbs that may wait for their job.
_WAITING = ("run", "rerun")
_NO_WAIT = {"--wait", "--wait_job_finish", "--dry-run", "--json", "--help", "-h"}
_MAX_PAGES = 500


class SubmarineInterpreter(Interpreter):
    """The default entry of one of Zeppelin's sessions."""

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._lock = threading.Lock()
        self._pages: dict[str, Page] = {}
        self._stops: dict[str, Stop] = {}
        self._refresher = Refresher()
        self._boards = LocalBoards()
        self._resumer = Resumer(properties, server, self._refresher, self._adopt)

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
                good, forms = self._commands(text, context, page)
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
                if self._stops.get(context.paragraph_id) is stop:
                    del self._stops[context.paragraph_id]
        if good:
            page.show()
            return Result(Code.KEEP, forms=forms)
        return Result(Code.ERROR, page.messages(), forms)

    def cancel(self, context: Context) -> None:
        """Stop: as Ctrl-C."""
        with self._lock:
            stop = self._stops.get(context.paragraph_id)
        if stop is not None:
            stop.wish()

    def lane(self, context: Context) -> str:
        """Every paragraph by itself: one may cancel the job that another one waits for."""
        return context.paragraph_id

    def active(self, context: Context) -> bool:
        """Whether a job that the paragraph's ``run`` began has not ended."""
        with self._lock:
            page = self._pages.get(context.paragraph_id)
        if page is None or page.form or not page.started:
            return False
        return any(not card.ended.is_set() for card in page.cards)

    def progress(self, context: Context) -> int:
        """How far the paragraph's newest job says it is."""
        with self._lock:
            page = self._pages.get(context.paragraph_id)
        cards = page.cards if page is not None else []
        return cards[-1].progress if cards else 0

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """The grammar's proposals for the line that is being typed."""
        line = text[:cursor].rpartition("\n")[2]
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        words = [*words, ""] if not line or line[-1:].isspace() else words
        mouth = self._mouth(context, Page(self.server.output(context), 1 << 16), read=False)
        return [
            Completion(word, word, "command" if len(words) == 1 else "")
            for word in complete(words, mouth)
            if word.startswith(words[-1]) and shlex.quote(word) == word
        ]

    def close(self) -> None:
        """Nothing is written any more; jobs live on."""
        self._refresher.close()
        self._boards.close()

    def _begin(self, context: Context, page: Page, stop: Stop) -> None:
        with self._lock:
            before = self._pages.pop(context.paragraph_id, None)
            self._pages[context.paragraph_id] = page
            self._stops[context.paragraph_id] = stop
            while len(self._pages) > _MAX_PAGES:
                del self._pages[next(iter(self._pages))]
        if before is not None:
            self._refresher.leave(before)

    def _adopt(self, paragraph_id: str, page: Page) -> bool:
        """Let a page that was found again be the paragraph's, unless it has been run since."""
        with self._lock:
            return self._pages.setdefault(paragraph_id, page) is page

    def _mouth(self, context: Context, page: Page, *, read: bool = True) -> ZeppelinMouth:
        found = self.server.paragraphs(context.note_id, context.user) if read else []
        note = read_note(found, spellings_of(context.note_id))
        return ZeppelinMouth(context, self.properties, note, page, self._refresher)

    def _recover(self, context: Context, page: Page) -> Result:
        """The server has found us again, or us anew: show what the paragraph had begun."""
        mouth = self._mouth(context, page)
        jobs = self._resumer.jobs_of(context)
        for job in jobs:
            mouth.show(job)
            if self._waits():
                mouth.watch(job)
        if not jobs:
            page.say("The interpreter was started again while this ran; it began no job.")
            return Result(Code.ERROR, page.messages())
        page.show()
        return Result(Code.KEEP)

    def _commands(
        self, text: str, context: Context, page: Page
    ) -> tuple[bool, Mapping[str, object] | None]:
        lines = lines_of(text)
        mouth = self._mouth(context, page)
        mode = settings.choice(self.properties, "submarine.stop", ("cancel", "detach"))
        dashboard = Dashboard(mouth, lambda words: self._execute(words, mouth, mode))
        forms = None
        try:
            for line in lines:
                word = former.word_of(line)
                if word is not None:
                    good, forms = dashboard.perform(word)
                else:
                    good = self._execute(former.ours(_words(line)), mouth, mode)
                if not good:
                    return False, forms
        except KeyboardInterrupt:
            if mode == "cancel":
                mouth.cancel_cut_off()
            raise
        return True, forms

    def _execute(self, words: Sequence[str], mouth: ZeppelinMouth, mode: str) -> bool:
        words = self._waiting(list(words), mode)
        _check_verb(words)
        if words[:1] == ["tensorboard"] and not {"--help", "-h", "--json"} & set(words):
            return self._boards.show(words[1:], mouth)
        return show_outcome(execute(words, mouth), mouth)

    def _waiting(self, words: list[str], mode: str) -> list[str]:
        """With what Stop does, and ``--wait`` where paragraphs last as long as their jobs."""
        if not words or words[0] not in _WAITING:
            return words
        added = ["--wait"] if self._waits() and not _NO_WAIT & set(words) else []
        if not any(word.startswith("--on-interrupt") for word in words):
            added.append(f"--on-interrupt={mode}")
        return [words[0], *added, *words[1:]]

    def _waits(self) -> bool:
        return scheduled() or settings.flag(self.properties, "submarine.wait")


def scheduled() -> bool:
    """Whether this process was started for one scheduled run of a note."""
    return "-isolated-" in os.environ.get("INTERPRETER_GROUP_ID", "")


def lines_of(text: str) -> list[str]:
    """The commands of a paragraph: a line each, joined where one ends in a backslash."""
    joined = text.replace("\r\n", "\n").replace("\r", "\n").replace("\\\n", " ")
    lines = [line.strip() for line in joined.split("\n")]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        return ["help"]
    return found


def show_outcome(outcome: Outcome, mouth: ZeppelinMouth) -> bool:
    """Put what a verb gave back into the paragraph; whether it went well."""
    page = mouth.page
    if outcome.as_json:
        page.say(outcome.rendered())
    elif outcome.job is not None:
        if outcome.exit_code != SUCCESS and outcome.job.id not in {c.job.id for c in page.cards}:
            page.say(outcome.text)
        mouth.show(outcome.job)
    elif outcome.html is not None:
        page.html(outcome.html)
    elif outcome.text:
        page.say(outcome.text)
    page.show()
    return outcome.exit_code == SUCCESS


def _check_verb(words: Sequence[str]) -> None:
    """Refuse what has no meaning in a note, or belongs to this machine's administrator."""
    verb = words[0] if words else ""
    if verb == "clear":
        raise UsageError(
            "There is nothing to clear: the program is what the note's paragraphs are.",
            "Delete a paragraph, or give it another interpreter, to take it out.",
        )
    if verb in plugins() or "--stop-driver" in words:
        raise UsageError(
            f"{verb} is for a terminal of this machine.", f"Type submarine {verb} there."
        )


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError(f"The quotes in {line[:80]!r} do not close.") from None


INTERPRETER = SubmarineInterpreter
