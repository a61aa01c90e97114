"""Options that people know from Apache Submarine and that are not there: each refused by its name.

None is ever ignored: a job that silently runs without what was asked for is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple


class Unsupported(NamedTuple):
    """An option that is known and not there: its spellings, what it is, what to do."""

    names: tuple[str, ...]
    what: str
    instead: str


_KERBEROS = "Use a cluster with simple authentication."

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported(("--keytab",), "Kerberos is", _KERBEROS),
    Unsupported(("--principal",), "Kerberos is", _KERBEROS),
    Unsupported(("--distribute_keytab",), "Kerberos is", _KERBEROS),
    Unsupported(
        ("--insecure",),
        "Kerberos is",
        "Every job uses simple authentication: leave --insecure out.",
    ),
)


def spelling(option: str) -> str:
    """The one spelling of an option that both ``--num_ps`` and ``--num-ps`` have."""
    return option.replace("_", "-")


_BY_NAME = {spelling(name): known for known in UNSUPPORTED for name in known.names}


def refusal(option: str) -> tuple[str, str] | None:
    """The sentence and the way out for an option that is not there, else None."""
    known = _BY_NAME.get(spelling(option))
    return (f"{known.what} not in this release ({option}).", known.instead) if known else None
