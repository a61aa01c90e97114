"""Which address leads to which handler; nothing else.

Every handler below ``BASE`` must be guarded: ``scripts/check_handlers.py`` goes through ``routes``.
"""

from __future__ import annotations

import importlib
from typing import Any

from submarine_server import API

#: Below the server's base URL; ``API`` is the version of the JSON.
BASE = f"submarine/api/v{API}"

#: Modules with ``ROUTES``: (pattern below BASE, handler) each.
MODULES = (
    "submarine_server.handlers.health",
    "submarine_server.handlers.jobs",
    "submarine_server.handlers.job",
    "submarine_server.handlers.actions",
    "submarine_server.handlers.models",
    "submarine_server.handlers.program",
    "submarine_server.handlers.cluster",
    "submarine_server.handlers.completion",
    "submarine_server.handlers.logs",
    "submarine_server.handlers.log_search",
    "submarine_server.channel.websocket",
)
#: Modules with ``PAGES``: (pattern below the base URL, handler, keywords) each.
PAGE_MODULES: tuple[str, ...] = ("submarine_server.tensorboard",)
#: Modules with ``attach(settings, core)``, called once when the server starts: what handlers share
#: besides the core goes into the settings, and what must be ended into ``core.on_close``.
PARTS: tuple[str, ...] = (
    "submarine_server.services",
    "submarine_server.tensorboard",
)
#: Answers all addresses below BASE that nobody else does.
LAST = "submarine_server.handlers.health"


def routes() -> list[tuple[Any, ...]]:
    """All routes below the server's base URL, the catch-all last."""
    found: list[tuple[Any, ...]] = []
    for name in MODULES:
        for pattern, handler in importlib.import_module(name).ROUTES:
            found.append((rf"/{BASE}/{pattern}", handler))
    for name in PAGE_MODULES:
        found += importlib.import_module(name).PAGES
    found.append((rf"/{BASE}(?:/.*)?", importlib.import_module(LAST).NotFoundHandler))
    return found
