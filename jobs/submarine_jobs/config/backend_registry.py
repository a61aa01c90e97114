"""Find the class of a backend by its name: entry points of the group ``submarine.backends``.

An entry point maps a name to a class, ``module:class``; its module is imported at the first use.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

ENTRY_POINT_GROUP = "submarine.backends"
#: The entry points of this distribution, as in `pyproject.toml` (a test compares both). To look up
#: the metadata of 219 distributions takes 47 to 58 ms of CPU time, half of it for the import of
#: importlib.metadata; a command that uses one of these does without. No package replaces them.
_OWN: Mapping[str, str] = {
    "yarn": "submarine_jobs.backends.yarn:YarnBackend",
    "local": "submarine_jobs.backends.local:LocalBackend",
}


@functools.cache
def _installed() -> Mapping[str, str]:
    """Return the name of each installed backend with its class; only metadata is read."""
    # cost: importlib.metadata, which a command with a backend of this package does not need.
    from importlib.metadata import entry_points

    others = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    return {**_OWN, **{name: others[name] for name in sorted(others) if name not in _OWN}}


def backend_names() -> tuple[str, ...]:
    """Return the names of the installed backends, those of this package first."""
    return tuple(_installed())


def has_other_backends() -> bool:
    """Return whether another package has registered a backend."""
    return len(_installed()) > len(_OWN)


def check_backend_name(name: str) -> str:
    """Return ``name`` if a backend of that name is installed, else raise UsageError."""
    if name not in _OWN and name not in _installed():
        raise UsageError(
            _("There is no backend {name!r}; installed are {names}.").format(
                name=name[:60], names=", ".join(backend_names())
            )
        )
    return name


def load_backend(name: str) -> Any:
    """Import and return the object that is registered as the backend ``name``.

    Raises
    ------
    UsageError
        If no backend of that name is installed, or its package cannot be imported.
    """
    value = _OWN.get(name) or _installed()[check_backend_name(name)]
    try:
        return pkgutil.resolve_name(value)
    except Exception as exc:
        # The module belongs to another package, so any exception is possible.
        raise UsageError(
            _("The backend {name} cannot be loaded from {value}: {error}.").format(
                name=name, value=value, error=str(exc)[:300] or type(exc).__name__
            ),
            _("Install its package again, or remove it."),
        ) from exc


def backend_settings(name: str | None) -> Mapping[str, str]:
    """Return the own settings of a backend of another package, each with one line of help.

    Those of this package's backends are in ``KNOWN_SETTINGS``.
    """
    if name is None or name in _OWN:
        return {}
    found: Mapping[str, str] = getattr(load_backend(name), "settings", {})
    return found
