"""Problems of a workflow: one sentence each, with the line that it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

MAX_TOLD = 20


@dataclass(frozen=True, order=True)
class Problem:
    """One problem of a workflow.

    Attributes
    ----------
    line
        Line of the workflow's text, from 1; 0 if the problem concerns the whole text.
    sentence
        The problem and how to correct it.
    file
        Name of the file; empty if there is only one text, as in a cell.
    """

    line: int
    sentence: str
    file: str = ""

    def __str__(self) -> str:
        place = _("line {line}").format(line=self.line) if self.line else ""
        if self.file:
            place = f"{self.file}, {place}" if place else self.file
        return f"{place}: {self.sentence}" if place else self.sentence


class WorkflowError(UsageError):
    """A workflow is invalid.

    Attributes
    ----------
    problems
        All problems, sorted by line; at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        told = [str(problem) for problem in self.problems[:MAX_TOLD]]
        if len(self.problems) > MAX_TOLD:
            told.append(_("and {count} more").format(count=len(self.problems) - MAX_TOLD))
        super().__init__("\n".join(told))
