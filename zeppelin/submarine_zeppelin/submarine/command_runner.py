"""The lines of a ``%submarine`` paragraph: which commands they are, and each of them done.

The verbs are ``submarine_jobs.commands``'s and those of plug-ins; here is what Zeppelin adds to
them: how long they wait, what Stop does, which of them are for a terminal of its machine only.
Knows nothing of sessions and their end (``submarine``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from submarine_jobs.commands import CellBody, execute
from submarine_jobs.commands.grammar import plugins
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import INTERRUPTED, SUCCESS, Outcome
from submarine_zeppelin.interface import properties as settings
from submarine_zeppelin.notes import (
    OWNERS,
    body_of,
    help_in_note,
    legacy as former,
    lines_of,
    words_of,
)
from submarine_zeppelin.submarine.captured_output import printed_to
from submarine_zeppelin.submarine.dashboard import Dashboard
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.tensorboards import LocalBoards

#: Verbs that may wait for their job.
_WAITING = ("run", "rerun")
_RUN = ["workflow", "run"]
_NO_WAIT = {"--wait", "--wait_job_finish", "--dry-run", "--json", "--help", "-h"}


class Lines:
    """What one run of a paragraph does.

    Parameters
    ----------
    boards
        TensorBoards of this machine.
    """

    def __init__(
        self, frontend: ZeppelinFrontend, properties: Mapping[str, str], boards: LocalBoards
    ) -> None:
        self._frontend = frontend
        self._properties = properties
        self._boards = boards
        self._mode = settings.choice(properties, settings.STOP, settings.STOPS)

    def perform(self, text: str) -> tuple[bool, Mapping[str, object] | None]:
        """Do one after the other, up to the first that fails.

        Returns
        -------
        bool
            Whether all went well.
        Mapping or None
            The paragraph's form where it has changed.
        """
        dashboard = Dashboard(self._frontend, self._execute)
        good, forms = True, None
        try:
            whole = body_of(text, *self._frontend.numbering)
            if whole is not None:
                return self._execute(*whole), None
            for line in lines_of(text):
                word = former.word_of(line)
                if word is not None:
                    good, forms = dashboard.perform(word)
                else:
                    good = self._execute(former.ours(words_of(line)))
                if not good:
                    break
        except KeyboardInterrupt:
            if self._mode == "cancel":
                self._frontend.cancel_cut_off()
            raise
        return good, forms

    def _execute(self, words: Sequence[str], body: CellBody | None = None) -> bool:
        words = self._waiting(list(words))
        _check_verb(words)
        asks = bool({"--help", "-h", "--json"} & set(words))
        if words[:1] == ["tensorboard"] and not asks:
            return self._boards.show(words[1:], self._frontend)
        if words[:1] == ["clear"] and not asks:
            self._frontend.say(
                "Nothing had to be cleared: the program is what the note's paragraphs are now. "
                "Delete a paragraph, or give it another interpreter, to take it out."
            )
            return True
        if words[:1] == ["workflow"]:
            self._frontend.write_notebook()
        if words[0] in _WAITING and not asks:
            # Until the cluster has taken a job there is nothing else to see for some seconds.
            self._frontend.renew("Submitting ...")
        try:
            with printed_to(self._frontend.say):
                outcome = execute(words, self._frontend, body)
        except KeyboardInterrupt:
            self._stop_runs(words)
            raise
        finally:
            self._frontend.page.step("")
        good = show_outcome(outcome, self._frontend)
        if good and words[:1] == ["logs"] and self._frontend.page.empty:
            self._frontend.say("Nothing is in this log yet.")
        if outcome.exit_code == INTERRUPTED:
            self._stop_runs(words)
        return good

    def _stop_runs(self, words: Sequence[str]) -> None:
        """Stop of a paragraph that waits for the run of a workflow."""
        if words[:2] == _RUN and self._mode == "cancel":
            for run in tuple(self._frontend.runs):
                show_outcome(execute(["workflow", "cancel", run], self._frontend), self._frontend)

    def _waiting(self, words: list[str]) -> list[str]:
        """With what Stop does, and ``--wait`` where paragraphs last as long as their jobs."""
        added = ["--wait"] if waits(self._properties) and not _NO_WAIT & set(words) else []
        if words[:2] == _RUN:
            return [*_RUN, *added, *words[2:]]
        if not words or words[0] not in _WAITING:
            return words
        if not any(word.startswith("--on-interrupt") for word in words):
            added.append(f"--on-interrupt={self._mode}")
        return [words[0], *added, *words[1:]]


def waits(properties: Mapping[str, str]) -> bool:
    """Whether a paragraph that starts a job lasts as long as the job."""
    return scheduled() or settings.flag(properties, "submarine.wait")


def scheduled() -> bool:
    """Whether this process was started for one scheduled run of a note."""
    return "-isolated-" in os.environ.get("INTERPRETER_GROUP_ID", "")


def show_outcome(outcome: Outcome, frontend: ZeppelinFrontend) -> bool:
    """Put what a verb gave back into the paragraph; whether it went well."""
    page = frontend.page
    if outcome.as_json:
        page.say(outcome.rendered())
    elif outcome.job is not None:
        if outcome.exit_code != SUCCESS and outcome.job.id not in {c.job.id for c in page.cards}:
            page.say(outcome.text)
        frontend.show(outcome.job)
    elif outcome.html is not None:
        page.html(outcome.html)
    elif outcome.text:
        helps = isinstance(outcome.value, Mapping) and "help" in outcome.value
        page.say(help_in_note(outcome.text) if helps else outcome.text)
    page.show()
    return outcome.exit_code == SUCCESS


def _check_verb(words: Sequence[str]) -> None:
    """Refuse what belongs to the administrator of this machine."""
    verb = words[0] if words else ""
    # They change Zeppelin's machine or account: not for everybody who may edit a note.
    if (verb in OWNERS and verb in plugins()) or "--stop-driver" in words:
        raise UsageError(
            f"{verb} is for a terminal of this machine.", f"Type submarine {verb} there."
        )
