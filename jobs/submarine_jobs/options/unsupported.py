"""Options of Apache Submarine that are not supported. They are rejected by name."""

from __future__ import annotations

from typing import NamedTuple

from submarine_runtime.translation import _, gettext_noop


class Unsupported(NamedTuple):
    """An unsupported option: its spellings, the feature, and the alternative."""

    names: tuple[str, ...]
    feature: str
    instead: str


_KERBEROS = gettext_noop("A choice of the authentication")

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported(
        ("--insecure",),
        _KERBEROS,
        gettext_noop("The cluster's configuration decides: leave --insecure out."),
    ),
)


def normalize_option(option: str) -> str:
    """Return the same spelling for ``--num_ps`` and ``--num-ps``."""
    return option.replace("_", "-")


_BY_NAME = {normalize_option(name): known for known in UNSUPPORTED for name in known.names}


def unsupported_option(option: str) -> tuple[str, str] | None:
    """Return error and alternative for an unsupported option, else None."""
    known = _BY_NAME.get(normalize_option(option))
    if known is None:
        return None
    message = _("{feature} is not in this release ({option}).")
    return message.format(feature=_(known.feature), option=option), _(known.instead)
