"""What is wrong with a workflow: one sentence, with the line that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from submarine_jobs.errors import UsageError

MAX_TOLD = 20


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong.

    Attributes
    ----------
    line
        Line of the workflow's text, from 1; 0: it is about the whole.
    sentence
        What is wrong and what would be right.
    file
        Name of the file; empty where there is one text only, as in a cell.
    """

    line: int
    sentence: str
    file: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}" if self.line else ""
        if self.file:
            place = f"{self.file}, {place}" if place else self.file
        return f"{place}: {self.sentence}" if place else self.sentence


class WorkflowError(UsageError):
    """A workflow that cannot be used as it stands.

    Attributes
    ----------
    problems
        All that were found, in the order of their lines; at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        told = [str(problem) for problem in self.problems[:MAX_TOLD]]
        if len(self.problems) > MAX_TOLD:
            told.append(f"and {len(self.problems) - MAX_TOLD} more")
        super().__init__("\n".join(told))
