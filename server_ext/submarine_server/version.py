"""Versions of the extension: of the project, and of its JSON."""

from __future__ import annotations

from submarine_jobs import __version__ as VERSION  # noqa: N812

#: Version of the JSON and of the websocket's messages.
API = 1

__all__ = ["API", "VERSION"]
