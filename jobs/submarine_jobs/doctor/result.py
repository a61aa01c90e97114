"""Data types of the doctor: checks, findings and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submarine_jobs.doctor.context import DoctorContext


class Status(str, Enum):  # noqa: UP042 - the value appears in JSON and output
    """``skipped``: the check does not apply; ``warning``: jobs run, but there is a problem."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """The finding of a check: a status, a sentence, and a fix."""

    status: Status
    sentence: str
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """One check.

    Parameters
    ----------
    look
        Returns the finding; a ``SubmarineError`` is converted to an error with its fix.
    seconds
        Timeout.
    node, client
        Whether it applies to a node of the cluster, and to a machine that submits jobs.
    cluster
        Whether it checks a YARN cluster; it is skipped if the profile has none.
    needs
        Names of earlier checks; it is skipped if one of them has found an error.
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
        The check was not run, because there is no cluster or a required check found an error.
    """

    name: str
    status: Status
    sentence: str
    fix: str = ""
    seconds: float = 0.0
    unchecked: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "status": self.status.value, "seconds": round(self.seconds, 3)}


def ok(sentence: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(Status.OK, sentence)


def warning(sentence: str, fix: str) -> Finding:
    """Return the finding of a problem that does not prevent jobs."""
    return Finding(Status.WARNING, sentence, fix)


def error(sentence: str, fix: str) -> Finding:
    """Return the finding of a problem that prevents jobs."""
    return Finding(Status.ERROR, sentence, fix)


def skipped(sentence: str) -> Finding:
    """Return the finding of a check that does not apply."""
    return Finding(Status.SKIPPED, sentence)
