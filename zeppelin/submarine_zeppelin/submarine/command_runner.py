"""Run the commands of a ``%submarine`` paragraph.

Verbs come from ``submarine_jobs.commands`` and plug-ins. This module adds options for waiting and
Stop, and rejects verbs that are reserved for a terminal on Zeppelin's machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from submarine_jobs.commands import CellBody, execute
from submarine_jobs.commands.grammar import plugins
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import INTERRUPTED, SUCCESS, Outcome
from submarine_runtime.translation import _
from submarine_zeppelin.interface import STOP, STOPS, choice_property, flag_property
from submarine_zeppelin.notes import (
    TERMINAL_VERBS,
    parse_cell_verb,
    parse_command,
    reword_help,
    split_commands,
    split_words,
    translate_command_line,
)
from submarine_zeppelin.submarine.captured_output import capture_prints
from submarine_zeppelin.submarine.dashboard import Dashboard
from submarine_zeppelin.submarine.frontend import ZeppelinFrontend
from submarine_zeppelin.submarine.interruption import Interruption
from submarine_zeppelin.submarine.tensorboards import LocalTensorBoards

#: Verbs that can wait for their job.
_WAITING_VERBS = ("run", "rerun", "predict")
_RUN = ["workflow", "run"]
_NO_WAIT = {"--wait", "--wait_job_finish", "--dry-run", "--json", "--help", "-h"}


class CommandRunner:
    """Runs the commands of one paragraph.

    Parameters
    ----------
    tensorboards
        TensorBoards on this machine.
    stop
        The request to stop the paragraph.
    """

    def __init__(
        self,
        frontend: ZeppelinFrontend,
        properties: Mapping[str, str],
        tensorboards: LocalTensorBoards,
        stop: Interruption,
    ) -> None:
        self._frontend = frontend
        self._properties = properties
        self._tensorboards = tensorboards
        self._stop = stop
        self._stop_action = choice_property(properties, STOP, STOPS)

    def run(self, text: str) -> tuple[bool, Mapping[str, Any] | None]:
        """Run the commands in order, up to the first that fails.

        Returns
        -------
        bool
            Whether all commands succeeded.
        Mapping or None
            The paragraph's form if it has changed.
        """
        dashboard = Dashboard(self._frontend, self._execute)
        succeeded, forms = True, None
        try:
            cell_verb = parse_cell_verb(text, *self._frontend.numbering)
            if cell_verb is not None:
                return self._execute(*cell_verb), None
            for line in split_commands(text):
                command = parse_command(line)
                if command is not None:
                    succeeded, forms = dashboard.run(command)
                else:
                    words = translate_command_line(split_words(line))
                    succeeded = self._execute(words)
                if not succeeded:
                    break
        except KeyboardInterrupt:
            if self._stop_action == "cancel":
                self._frontend.cancel_interrupted_submit()
            raise
        return succeeded, forms

    def _execute(self, words: Sequence[str], body: CellBody | None = None) -> bool:
        words = self._add_options(list(words))
        _check_permitted(words)
        asks = bool({"--help", "-h", "--json"} & set(words))
        if words[:1] == ["tensorboard"] and not asks:
            return self._tensorboards.show(words[1:], self._frontend)
        if words[:1] == ["clear"] and not asks:
            self._frontend.say(
                _(
                    "There is nothing to clear: the program consists of the note's current "
                    "paragraphs. To remove a paragraph from it, delete the paragraph or change "
                    "its interpreter."
                )
            )
            return True
        if words[:1] == ["workflow"]:
            self._frontend.export_note()
        self._frontend.begin_command()
        if words[0] in _WAITING_VERBS and not asks:
            # There is no other output until the cluster has accepted the job.
            self._frontend.show_progress("Submitting ...")
        try:
            with capture_prints(self._frontend.say):
                outcome = execute(words, self._frontend, body)
            if outcome.exit_code == INTERRUPTED:
                self._stop.acknowledge()
            succeeded = show_outcome(outcome, self._frontend)
        except KeyboardInterrupt:
            self._stop_runs(words)
            raise
        finally:
            self._frontend.end_command()
        if succeeded and words[:1] == ["logs"] and self._frontend.publisher.empty:
            self._frontend.say(_("This log is still empty."))
        if outcome.exit_code == INTERRUPTED:
            self._stop_runs(words)
        return succeeded

    def _stop_runs(self, words: Sequence[str]) -> None:
        """Cancel the workflow runs of a paragraph that is stopped."""
        if words[:2] == _RUN and self._stop_action == "cancel":
            for run in tuple(self._frontend.runs):
                show_outcome(execute(["workflow", "cancel", run], self._frontend), self._frontend)

    def _add_options(self, words: list[str]) -> list[str]:
        """Add options for Stop, and ``--wait`` if paragraphs wait for their jobs."""
        added = ["--wait"] if waits(self._properties) and not _NO_WAIT & set(words) else []
        if words[:2] == _RUN:
            return [*_RUN, *added, *words[2:]]
        if not words or words[0] not in _WAITING_VERBS:
            return words
        if not any(word.startswith("--on-interrupt") for word in words):
            added.append(f"--on-interrupt={self._stop_action}")
        return [words[0], *added, *words[1:]]


def waits(properties: Mapping[str, str]) -> bool:
    """Whether a paragraph that starts a job waits until the job has ended."""
    return scheduled() or flag_property(properties, "submarine.wait")


def scheduled() -> bool:
    """Whether this process was started for a scheduled run of a note."""
    return "-isolated-" in os.environ.get("INTERPRETER_GROUP_ID", "")


def show_outcome(outcome: Outcome, frontend: ZeppelinFrontend) -> bool:
    """Show the outcome of a command and return whether the command succeeded."""
    if isinstance(outcome.value, Mapping) and "help" in outcome.value and not outcome.as_json:
        outcome = replace(outcome, text=reword_help(outcome.text))
    frontend.show_outcome(outcome)
    return outcome.exit_code == SUCCESS


def _check_permitted(words: Sequence[str]) -> None:
    """Reject verbs that are reserved for the administrator of this machine."""
    verb = words[0] if words else ""
    if verb == "login" and not {"--help", "-h"} & set(words):
        raise UsageError(
            _("A paragraph cannot ask for a password."),
            _(
                "An administrator sets SUBMARINE_HADOOP_KEYTAB and SUBMARINE_HADOOP_PRINCIPAL on "
                "the page Interpreters, or runs kinit in a terminal as Zeppelin's account."
            ),
        )
    # These verbs change Zeppelin's machine or account.
    if (verb in TERMINAL_VERBS and verb in plugins()) or "--stop-driver" in words:
        raise UsageError(
            _("{verb} is only available in a terminal on this machine.").format(verb=verb),
            _("Run submarine {verb} there.").format(verb=verb),
        )
