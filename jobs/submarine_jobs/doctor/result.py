"""The form of a check and of what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submarine_jobs.doctor.context import DoctorContext


class Status(str, Enum):  # noqa: UP042 - the value is the word that JSON and people see
    """``skipped``: the check does not apply here; ``warning``: jobs run, something is not right."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """What a check says: how it stands, one sentence, and what would be right."""

    status: Status
    sentence: str
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """One check.

    Parameters
    ----------
    look
        Gives the finding; a ``SubmarineError`` that it raises becomes an error with its fix.
    seconds
        How long it may take.
    node, client
        Whether it makes sense on a cluster's node, and where jobs are submitted.
    cluster
        Whether it is about a YARN cluster: not run where the profile is none.
    needs
        Names of earlier checks: not run when one of them has found an error.
    """

    name: str
    look: Callable[[DoctorContext], Finding]
    seconds: float = 20.0
    node: bool = False
    client: bool = True
    cluster: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """A finding with the name of its check and the seconds that it took.

    Parameters
    ----------
    unchecked
        The check was not run, since there is no cluster or a check that it needs found an error.
    """

    name: str
    status: Status
    sentence: str
    fix: str = ""
    seconds: float = 0.0
    unchecked: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "status": self.status.value, "seconds": round(self.seconds, 3)}


def ok(sentence: str) -> Finding:
    """All is well."""
    return Finding(Status.OK, sentence)


def warning(sentence: str, fix: str) -> Finding:
    """Jobs run, but something is not right."""
    return Finding(Status.WARNING, sentence, fix)


def error(sentence: str, fix: str) -> Finding:
    """Jobs will not run."""
    return Finding(Status.ERROR, sentence, fix)


def skipped(sentence: str) -> Finding:
    """The check does not apply."""
    return Finding(Status.SKIPPED, sentence)
