"""Options that people know from Submarine or from later releases: each is refused by its name.

None is ever ignored: a job that silently runs without what was asked for is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple


class Later(NamedTuple):
    """An option that is known and not there yet: its spellings, what it is, what to do."""

    names: tuple[str, ...]
    what: str
    instead: str


_KERBEROS = "Use a cluster with simple authentication."

LATER: tuple[Later, ...] = (
    Later(("--keytab",), "Kerberos is", _KERBEROS),
    Later(("--principal",), "Kerberos is", _KERBEROS),
    Later(("--distribute_keytab",), "Kerberos is", _KERBEROS),
)


def spelling(option: str) -> str:
    """The one spelling of an option that both ``--num_ps`` and ``--num-ps`` have."""
    return option.replace("_", "-")


_BY_NAME = {spelling(name): later for later in LATER for name in later.names}


def refusal(option: str) -> tuple[str, str] | None:
    """The sentence and the way out for an option of a later release, else None."""
    later = _BY_NAME.get(spelling(option))
    return (f"{later.what} not in this release ({option}).", later.instead) if later else None
