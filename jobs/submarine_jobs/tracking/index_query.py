"""Which rows of the index are asked for, as SQL; runs none of it.

The order of a list of jobs: those that go on, then those that have ended, each the newest first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.states import State

_ENDED = ",".join(f"'{state.value}'" for state in State if state.ended)
_OVER = f"(state IN ({_ENDED}))"
#: Jobs of one user: nothing that is known of a job names another one.
OWN = (
    "coalesce(owner, '') IN ('', ?) AND coalesce(recorded, '') IN ('', ?) "
    "AND coalesce(json_extract(record, '$.user'), '') IN ('', ?)"
)
ORDER = f"ORDER BY {_OVER}, created DESC, job_id DESC"
_CURSOR = re.compile(r"([01]):(\d{1,12}(?:\.\d{1,9})?):([a-z0-9-]{1,80})")


@dataclass(frozen=True)
class JobQuery:
    """What is wanted of the index.

    Parameters
    ----------
    states
        Only these; empty: all.
    text
        Part of the name or id of a job, or of its workflow or a run of that, in any case.
    user
        Only jobs of this user, or of whom nothing is known; None: of all.
    after
        ``cursor_of`` the last row that is there already.
    """

    states: Sequence[State] = ()
    text: str = ""
    user: str | None = None
    limit: int = 50
    after: str = ""

    def where(self, *, paged: bool) -> tuple[str, tuple[Any, ...]]:
        """The condition with its values; without ``paged`` for all pages together.

        Raises
        ------
        UsageError
            If ``after`` is no cursor.
        """
        parts: list[str] = []
        values: list[Any] = []
        if self.states:
            parts.append(f"state IN ({','.join('?' * len(self.states))})")
            values += [state.value for state in self.states]
        if self.text:
            workflow = "lower(coalesce(json_extract(record, '$.workflow{0}'), ''))"
            places = ("lower(name)", "job_id", workflow.format(""), workflow.format("_run"))
            parts.append(f"({' OR '.join(f'instr({place}, ?)' for place in places)})")
            values += [self.text.lower()] * len(places)
        if self.user is not None:
            parts.append(OWN)
            values += [self.user] * OWN.count("?")
        if paged and self.after:
            over, created, job_id = _parsed(self.after)
            parts.append(
                f"({_OVER} > ? OR ({_OVER} = ? AND (created < ? OR (created = ? AND job_id < ?))))"
            )
            values += [over, over, created, created, job_id]
        return (f"WHERE {' AND '.join(parts)}" if parts else ""), tuple(values)


def cursor_of(state: State, created: float, job_id: str) -> str:
    """Where a page ended that had this row last."""
    return f"{int(state.ended)}:{created!r}:{job_id}"


def _parsed(cursor: str) -> tuple[int, float, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None or not layout.is_job_id(match.group(3)):
        raise UsageError("`after` is not where a page of this list ended.", "Begin without it.")
    return int(match.group(1)), float(match.group(2)), match.group(3)
