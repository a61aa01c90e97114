"""Versions of the extension: of the wheel, and of its JSON."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version as installed

#: Version of the JSON and of the websocket's messages.
API = 1


def version() -> str:
    """Return the version of the wheel, or ``0`` if it is not installed."""
    try:
        return installed("jupyter-submarine")
    except PackageNotFoundError:
        return "0"
