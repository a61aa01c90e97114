"""Options of Apache Submarine that are not supported. They are rejected by name, never ignored."""

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


def normalize_option(option: str) -> str:
    """The one spelling of an option that both ``--num_ps`` and ``--num-ps`` have."""
    return option.replace("_", "-")


_BY_NAME = {normalize_option(name): known for known in UNSUPPORTED for name in known.names}


def unsupported_option(option: str) -> tuple[str, str] | None:
    """The sentence and the way out for an option that is not there, else None."""
    known = _BY_NAME.get(normalize_option(option))
    return (f"{known.what} not in this release ({option}).", known.instead) if known else None
